package collection

import (
	"slices"

	"sluice/access"
	"sluice/fault"
)

// may says whether somebody may read a collection, or write to it: as a user who owns it or has a grant for it, or an admin
// (access.MayCollection, which also refuses writes of agents: what an agent reads may hold instructions, and what it could
// write down would speak to everybody who searches afterwards). A collection that explains a database is for those who may
// read something of that database.
func may(who access.Principal, c Collection, write bool) bool {
	if c.Database != "" && !access.MayDatabase(who, c.Database) {
		return false
	}
	return access.MayCollection(asOwner(who, c), c.Name, write)
}

// asOwner adds to the holder who owns a collection the grant that an owner does without. A restricted principal reads
// through grants alone.
func asOwner(who access.Principal, c Collection) access.Principal {
	if c.Owner == "" || !who.Ceiling().AtLeast(access.ReadOnly) {
		return who
	}
	return withGrant(who, c.Name, func(h access.Holder) bool { return h.User == c.Owner })
}

// mayCreate says whether somebody may make a collection of this name, which is then theirs.
func mayCreate(who access.Principal, name string) bool {
	return access.MayCollection(withGrant(who, name, func(access.Holder) bool { return true }), name, true)
}

func withGrant(who access.Principal, name string, to func(access.Holder) bool) access.Principal {
	who.Holders = slices.Clone(who.Holders)
	for i, h := range who.Holders {
		if to(h) {
			h.Grants = append(slices.Clone(h.Grants), access.Grant{Kind: access.GrantCollection, Name: name, Access: "write"})
			who.Holders[i] = h
		}
	}
	return who
}

// unknown is the answer for a collection that is not there and for one that may not be read: nobody can tell which.
func unknown(name string) error {
	return fault.New(fault.NotFound, "collection", "there is no collection '%s' that you may read", cut(name, 63))
}

// noWrite is for who may read a collection, and so knows that it is there.
func noWrite(who access.Principal, name string) error {
	e := &fault.Error{Code: fault.Denied, Op: "collection", Kind: "auth", Msg: "you may read the collection '" + name + "' but not change it",
		Hint: "it takes the role read_write and a grant: sluice grants add USER collection --name " + name + " --access write"}
	if who.Agent {
		e.Msg, e.Hint = "an agent's key reads collections and changes none", ""
	}
	return e
}
