package access

// MayStatement says whether p may see a statement that by runs, and cancel it. An admin's credential from which nothing is
// taken away may with everybody's; anybody else with those of the same user that run with no higher role than p's own. A key
// that is narrowed, an agent's, or one that acts for others may be in other hands than its owner's: it has only its own,
// and of a key that acts for several users each has only theirs.
func MayStatement(p, by Principal) bool {
	if !p.Known() || by.KeyID == "" || by.Owner == "" {
		return false
	}
	if p.KeyID == by.KeyID && p.Owner == by.Owner {
		return true
	}
	if p.Agent || p.Narrowed() {
		return false
	}
	return p.Ceiling() == Admin || p.Owner == by.Owner && by.Known() && p.Ceiling().AtLeast(by.Ceiling())
}
