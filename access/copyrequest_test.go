package access

import (
	"encoding/hex"
	"testing"
	"time"
)

// TestACopyRequestIsBound to its statement, database and path, and to where one ends and the next begins.
func TestACopyRequestIsBound(t *testing.T) {
	r := CopyRequest{Statement: "COPY (SELECT 1) TO LAKE 'a' WITH (CONNECTION = 'local')", Database: "shop", Folder: Folder{"local", "a"}}
	r.Sum = CopyRequestSum(r.Statement, r.Database, r.Folder.Path)
	// printf 'sluice/copy-request/1\n\0\0\0\x37%s\0\0\0\4shop\0\0\0\1a' "$statement" | sha256sum
	const want = "08b24cb85ad3834c77295d837ba33dbf54d017c325d20c72843f071f935955b4"
	if got := hex.EncodeToString(r.Sum[:]); got != want {
		t.Errorf("the sum is %s, want %s", got, want)
	}
	if !r.Bound() {
		t.Error("not bound to itself")
	}
	for sentence, change := range map[string]func(*CopyRequest){
		"another statement":        func(r *CopyRequest) { r.Statement += " " },
		"another database":         func(r *CopyRequest) { r.Database = "shop2" },
		"another path":             func(r *CopyRequest) { r.Folder.Path = "b" },
		"a character moved over":   func(r *CopyRequest) { r.Statement += "s"; r.Database = "hop" },
		"another moved over":       func(r *CopyRequest) { r.Database = "shopa"; r.Folder.Path = "" },
		"another sum":              func(r *CopyRequest) { r.Sum[31]++ },
		"no sum":                   func(r *CopyRequest) { r.Sum = [32]byte{} },
		"the zero request's words": func(r *CopyRequest) { *r = CopyRequest{Sum: r.Sum} },
	} {
		other := r
		if change(&other); other.Bound() {
			t.Errorf("%s: still bound", sentence)
		}
	}
	if (CopyRequest{}).Bound() {
		t.Error("the zero request is bound")
	}
}

func TestAPendingRequestExpires(t *testing.T) {
	for sentence, row := range map[string]struct {
		r    CopyRequest
		want CopyRequestState
	}{
		"before its time":    {CopyRequest{State: CopyPending, ExpiresAt: noon.Add(time.Second)}, CopyPending},
		"at its time":        {CopyRequest{State: CopyPending, ExpiresAt: noon}, CopyExpired},
		"after its time":     {CopyRequest{State: CopyPending, ExpiresAt: noon.Add(-time.Hour)}, CopyExpired},
		"without a time":     {CopyRequest{State: CopyPending}, CopyExpired},
		"one that is done":   {CopyRequest{State: CopyDone, ExpiresAt: noon.Add(-time.Hour)}, CopyDone},
		"one that runs late": {CopyRequest{State: CopyRunning, ExpiresAt: noon.Add(-time.Hour)}, CopyRunning},
	} {
		if got := row.r.At(noon); got != row.want {
			t.Errorf("%s: %s", sentence, got)
		}
	}
}

// TestWhoMayApproveACopy walks through principals and conditions: ann asked through her agent's key.
func TestWhoMayApproveACopy(t *testing.T) {
	named := func(user string, p Principal) Principal {
		p.KeyID, p.Owner, p.Name, p.Holders[0].User = "login_"+user, user, user, user
		return p
	}
	ann := func(grants ...Grant) Principal { return named("ann", loginOf(ReadWrite, grants...)) }
	bob := func(grants ...Grant) Principal { return named("bob", loginOf(ReadWrite, grants...)) }
	agent := changed(named("ann", keyOf(ReadWrite, ReadWrite, shop, writeA)), func(p *Principal) { p.KeyID, p.Agent = "key_agent", true })
	forAnn := changed(agent, func(p *Principal) { // bob's key acts for ann
		p.Holders = append(p.Holders, Holder{User: "bob", Role: ReadWrite, Grants: []Grant{shop, writeA}})
	})
	stale := func(p Principal) Principal { p.AuthenticatedAt = noon.Add(-16 * time.Minute); return p }
	asks := func(change func(*Principal)) Principal {
		return changed(agent, func(p *Principal) {
			p.Holders = []Holder{{User: "ann", Role: ReadWrite, Grants: []Grant{shop, writeA}}}
			change(p)
		})
	}
	for sentence, row := range map[string]struct {
		p, asker Principal
		f        Folder
		want     bool
	}{
		"another person with all":                         {bob(shop, writeA), agent, folderA, true},
		"an admin":                                        {named("root", loginOf(Admin)), agent, folderA, true},
		"in one's own name, with agent_copy":              {ann(shop, writeA, agentA), agent, folderA, true},
		"in one's own name, without":                      {ann(shop, writeA), agent, folderA, false},
		"in one's own name, agent_copy alone":             {ann(shop, agentA), agent, folderA, false},
		"through one's own program, for another":          {bob(shop, writeA), forAnn, folderA, false},
		"the same with agent_copy":                        {bob(shop, writeA, agentA), forAnn, folderA, true},
		"the agent itself":                                {agent, agent, folderA, false},
		"a key with all":                                  {keyOf(ReadWrite, ReadWrite, shop, writeA, agentA), agent, folderA, false},
		"the admin's key":                                 {admin(), agent, folderA, false},
		"a login that is not fresh":                       {stale(bob(shop, writeA)), agent, folderA, false},
		"an admin's login that is not fresh":              {stale(named("root", loginOf(Admin))), agent, folderA, false},
		"without a database grant":                        {bob(writeA), agent, folderA, false},
		"with one on a table":                             {bob(orders, writeA), agent, folderA, false},
		"without lake_write":                              {bob(shop), agent, folderA, false},
		"a reader":                                        {named("bob", loginOf(ReadOnly, shop, writeA)), agent, folderA, false},
		"another folder":                                  {bob(shop, writeA), agent, folderAB, false},
		"the own folder of the server":                    {named("root", loginOf(Admin)), agent, Folder{"local", ".sluice"}, false},
		"a login that is an agent":                        {changed(bob(shop, writeA), func(p *Principal) { p.Agent = true }), agent, folderA, false},
		"nobody":                                          {Principal{}, agent, folderA, false},
		"nobody asked":                                    {bob(shop, writeA), Principal{}, folderA, false},
		"who asked has no database grant any more":        {bob(shop, writeA), asks(func(p *Principal) { p.Holders[0].Grants = []Grant{writeA} }), folderA, false},
		"who asked has no lake_write any more":            {bob(shop, writeA), asks(func(p *Principal) { p.Holders[0].Grants = []Grant{shop} }), folderA, false},
		"who asked is a reader now":                       {bob(shop, writeA), asks(func(p *Principal) { p.Holders[0].Role = ReadOnly }), folderA, false},
		"who asked has a read_only key":                   {bob(shop, writeA), asks(func(p *Principal) { p.Role = ReadOnly }), folderA, false},
		"who asked has a key of some tables":              {bob(shop, writeA), asks(func(p *Principal) { p.Tables = []string{"shop.orders"} }), folderA, false},
		"an admin approves what asks for some tables":     {named("root", loginOf(Admin)), asks(func(p *Principal) { p.Tables = []string{"shop.orders"} }), folderA, false},
		"who asked has a key of another database":         {bob(shop, writeA), asks(func(p *Principal) { p.Databases = []string{"erp"} }), folderA, false},
		"an admin's agent asked, another person approves": {bob(shop, writeA), changed(admin(), func(p *Principal) { p.Agent = true }), folderA, true},
	} {
		err := MayApproveCopy(row.p, row.asker, "shop", row.f, now)
		if (err == nil) != row.want {
			t.Errorf("%s: %v", sentence, err)
		}
		if err != nil {
			denied(t, sentence, err)
		}
	}
	if err := MayApproveCopy(bob(shop, writeA), agent, "shop", folderA, Moment{Now: noon}); err == nil {
		t.Error("a password is fresh for no time at all")
	}
}

// TestWhoSeesDeniesAndWithdraws: requests of ann's agent, of the program that acts for her, and of her own login.
func TestWhoSeesDeniesAndWithdraws(t *testing.T) {
	r := CopyRequest{Database: "shop", Folder: folderA, Asker: CopyAsker{Key: "key_agent", Owner: "ann"}}
	of := func(id, owner string, p Principal) Principal {
		p.KeyID, p.Owner, p.Holders[0].User = id, owner, owner
		return p
	}
	agent := func(p Principal) Principal { p.Agent = true; return p }
	for sentence, row := range map[string]struct {
		p                    Principal
		see, deny, withdrawn bool
	}{
		"the agent that asked":                    {agent(of("key_agent", "ann", keyOf(ReadWrite, ReadWrite))), true, false, true},
		"the same key, acting for another":        {agent(of("key_agent", "bob", keyOf(ReadWrite, ReadWrite))), false, false, false},
		"another agent of the same person":        {agent(of("key_2", "ann", keyOf(ReadWrite, ReadWrite))), false, false, false},
		"the person":                              {of("login_1", "ann", loginOf(ReadWrite)), true, true, true},
		"the person, who only reads now":          {of("login_1", "ann", loginOf(ReadOnly)), true, true, true},
		"the person, without a role":              {of("login_1", "ann", loginOf(NoRole)), false, false, false},
		"a key of the person":                     {of("key_3", "ann", keyOf(ReadWrite, ReadWrite)), true, true, true},
		"a narrowed key of the person":            {changed(of("key_3", "ann", keyOf(ReadWrite, ReadWrite)), func(p *Principal) { p.Tables = []string{} }), false, false, false},
		"an admin":                                {of("login_2", "root", loginOf(Admin)), true, true, false},
		"the admin's key":                         {admin(), true, true, false},
		"an admin's agent":                        {agent(admin()), false, false, false},
		"an admin's narrowed key":                 {with(func(p *Principal) { p.Databases = []string{"erp"} }), false, false, false},
		"who could approve":                       {of("login_3", "bob", loginOf(ReadWrite, shop, writeA)), true, true, false},
		"a key of who could":                      {of("key_4", "bob", keyOf(ReadWrite, ReadWrite, shop, writeA)), true, true, false},
		"an agent of who could":                   {agent(of("key_4", "bob", keyOf(ReadWrite, ReadWrite, shop, writeA))), false, false, false},
		"who may write elsewhere":                 {of("login_3", "bob", loginOf(ReadWrite, shop)), false, false, false},
		"who may not read the database":           {of("login_3", "bob", loginOf(ReadWrite, writeA)), false, false, false},
		"who may read a table":                    {of("login_3", "bob", loginOf(ReadWrite, orders, writeA)), false, false, false},
		"a reader":                                {of("login_3", "bob", loginOf(ReadOnly, shop, writeA)), false, false, false},
		"nobody":                                  {Principal{}, false, false, false},
		"nobody, with the agent's id and no role": {Principal{KeyID: "key_agent", Owner: "ann"}, false, false, false},
	} {
		got := [3]bool{MaySeeCopyRequest(row.p, r), MayDenyCopy(row.p, r) == nil, MayWithdrawCopy(row.p, r) == nil}
		if want := [3]bool{row.see, row.deny, row.withdrawn}; got != want {
			t.Errorf("%s: sees, denies, withdraws %v, want %v", sentence, got, want)
		}
	}
}
