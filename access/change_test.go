package access

import (
	"testing"
	"time"
)

// TestWhoMayCopy: COPY needs all of freshness, the role, a database grant and the grant on the folder, and no agent.
func TestWhoMayCopy(t *testing.T) {
	own := func(p Principal, grants ...Grant) Principal { p.Own = grants; return p }
	for sentence, row := range map[string]struct {
		p              Principal
		copy, external bool // with write and read grants on a
	}{
		"an admin's key":                       {admin(), true, true},
		"an admin who logged in":               {loginOf(Admin), true, true},
		"a user with all that it needs":        {loginOf(ReadWrite, shop, writeA, readA), true, true},
		"his key":                              {keyOf(ReadWrite, ReadWrite, shop, writeA, readA), true, true},
		"without the lake grants":              {loginOf(ReadWrite, shop), false, false},
		"with the one for writing only":        {loginOf(ReadWrite, shop, writeA), true, false},
		"with the one for reading only":        {loginOf(ReadWrite, shop, readA), false, true},
		"with agent_copy only":                 {loginOf(ReadWrite, shop, agentA), false, false},
		"a reader":                             {loginOf(ReadOnly, shop, writeA, readA), false, false},
		"a reader's read_write key":            {keyOf(ReadWrite, ReadOnly, shop, writeA, readA), false, false},
		"a writer's read_only key":             {keyOf(ReadOnly, ReadWrite, shop, writeA, readA), false, false},
		"without a database grant":             {loginOf(ReadWrite, writeA, readA), false, false},
		"with one on another database":         {loginOf(ReadWrite, erp, writeA, readA), false, false},
		"with one on a table":                  {loginOf(ReadWrite, orders, writeA, readA), false, false},
		"a key restricted to tables":           {changed(keyOf(ReadWrite, ReadWrite, shop, writeA, readA), func(p *Principal) { p.Tables = []string{"shop.orders"} }), false, false},
		"a key restricted to no table":         {with(func(p *Principal) { p.Tables = []string{} }), false, false},
		"a key of another database":            {changed(keyOf(ReadWrite, ReadWrite, shop, writeA, readA), func(p *Principal) { p.Databases = []string{"erp"} }), false, false},
		"a key of this database":               {changed(keyOf(ReadWrite, ReadWrite, shop, writeA, readA), func(p *Principal) { p.Databases = []string{"shop"} }), true, true},
		"an agent's key":                       {changed(keyOf(ReadWrite, ReadWrite, shop, writeA, readA), func(p *Principal) { p.Agent = true }), false, false},
		"an admin's agent key":                 {with(func(p *Principal) { p.Agent = true }), false, false},
		"an admin's read_write key":            {keyOf(ReadWrite, Admin), false, false},
		"the same with grants to its owner":    {keyOf(ReadWrite, Admin, writeA, readA), true, true},
		"the same with grants to itself":       {own(keyOf(ReadWrite, Admin), writeA, readA), true, true},
		"a user's key with grants to itself":   {own(keyOf(ReadWrite, ReadWrite, shop), writeA, readA), false, false},
		"a key narrowed to a table by a grant": {own(keyOf(ReadWrite, Admin, writeA, readA), orders), false, false},
		"a key narrowed to the database so":    {own(keyOf(ReadWrite, Admin, writeA, readA), shop), true, true},
		"an admin's key of some databases":     {with(func(p *Principal) { p.Databases = []string{"shop"} }), false, false},
		"the same with grants to itself too":   {own(with(func(p *Principal) { p.Databases = []string{"shop"} }), writeA, readA), true, true},
		"an admin's key narrowed by a grant":   {own(admin(), shop), false, false},
		"a login whose password was long ago":  {changed(loginOf(ReadWrite, shop, writeA, readA), func(p *Principal) { p.AuthenticatedAt = noon.Add(-16 * time.Minute) }), false, false},
		"the last second of freshness":         {changed(loginOf(ReadWrite, shop, writeA, readA), func(p *Principal) { p.AuthenticatedAt = noon.Add(-15 * time.Minute) }), true, true},
		"an admin's stale login":               {changed(loginOf(Admin), func(p *Principal) { p.AuthenticatedAt = noon.Add(-time.Hour) }), false, false},
		"a login without a time":               {changed(loginOf(Admin), func(p *Principal) { p.AuthenticatedAt = time.Time{} }), false, false},
		"a password of the future":             {changed(loginOf(Admin), func(p *Principal) { p.AuthenticatedAt = noon.Add(time.Minute) }), false, false},
		"clocks a second apart":                {changed(loginOf(Admin), func(p *Principal) { p.AuthenticatedAt = noon.Add(time.Second) }), true, true},
		"a key that somebody kept":             {with(func(p *Principal) { p.ReadAt = noon.Add(-2 * time.Minute) }), false, false},
		"a key that was read nowhere":          {with(func(p *Principal) { p.ReadAt = time.Time{} }), false, false},
		"a key with a password's time":         {with(func(p *Principal) { p.ReadAt, p.AuthenticatedAt = time.Time{}, noon }), false, false},
		"for two, one has no lake grants": {changed(loginOf(ReadWrite, shop, writeA, readA), func(p *Principal) {
			p.Holders = append(p.Holders, Holder{User: "b", Role: ReadWrite, Grants: []Grant{shop}})
		}), false, false},
		"for two, both have all": {changed(loginOf(ReadWrite, shop, writeA, readA), func(p *Principal) { p.Holders = append(p.Holders, p.Holders[0]) }), true, true},
		"for two, one is only a reader": {changed(loginOf(ReadWrite, shop, writeA, readA), func(p *Principal) {
			p.Holders = append(p.Holders, Holder{User: "b", Role: ReadOnly, Grants: p.Holders[0].Grants})
		}), false, false},
	} {
		external := func(f Folder) error {
			if err := MayExternal(row.p, "shop", now); err != nil {
				return err
			}
			return MayReadLake(row.p, f)
		}
		for what, c := range map[string]struct {
			got  error
			want bool
		}{"copy": {MayCopy(row.p, "shop", folderA, now), row.copy}, "external": {external(folderA), row.external}} {
			if (c.got == nil) != c.want {
				t.Errorf("%s: %s gives %v", sentence, what, c.got)
			}
			if c.got != nil {
				denied(t, sentence+": "+what, c.got)
			}
		}
		everywhere := row.p.reach()
		for _, f := range []Folder{folderAB, elsewhere, {"local", ""}, {"", "a"}, {"local", "../a"}, {"local", "a/"}, {"local", ".sluice"}} {
			valid := f == folderAB || f == elsewhere
			if err := MayWriteLake(row.p, f); (err == nil) != (everywhere && valid) {
				t.Errorf("%s: writes to %v: %v", sentence, f, err)
			}
			if err := MayReadLake(row.p, f); (err == nil) != (everywhere && valid) {
				t.Errorf("%s: reads %v: %v", sentence, f, err)
			}
		}
		if row.copy && (MayCopyFrom(row.p, "shop", Moment{Now: noon}) == nil) != !row.p.Login {
			t.Errorf("%s: a password is fresh for no time at all", sentence)
		}
		if row.copy && MayCopyFrom(row.p, "shop", Moment{FreshFor: time.Hour}) == nil {
			t.Errorf("%s: fresh without a clock", sentence)
		}
	}
}

// TestStillMayCopy is what is asked again before files are published: all but freshness.
func TestStillMayCopy(t *testing.T) {
	stale := changed(loginOf(ReadWrite, shop, writeA), func(p *Principal) { p.AuthenticatedAt = noon.Add(-time.Hour) })
	for sentence, row := range map[string]struct {
		p    Principal
		want bool
	}{
		"a login that is not fresh any more": {stale, true},
		"whose lake grant was taken away":    {loginOf(ReadWrite, shop), false},
		"whose database grant was":           {loginOf(ReadWrite, writeA), false},
		"whose role was lowered":             {loginOf(ReadOnly, shop, writeA), false},
		"whose key was made an agent's":      {changed(stale, func(p *Principal) { p.Agent = true }), false},
	} {
		if err := StillMayCopy(row.p, "shop", folderA); (err == nil) != row.want {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

func TestWhoMayHaveAnAgentsCopyRun(t *testing.T) {
	for sentence, row := range map[string]struct {
		p    Principal
		f    Folder
		want bool
	}{
		"by their own login, with every grant": {loginOf(ReadWrite, shop, writeA, agentA), folderA, true},
		"an admin's login":                     {loginOf(Admin), folderA, true},
		"with a key":                           {keyOf(ReadWrite, ReadWrite, shop, writeA, agentA), folderA, false},
		"with the admin's key":                 {admin(), folderA, false},
		"without agent_copy":                   {loginOf(ReadWrite, shop, writeA), folderA, false},
		"with agent_copy alone":                {loginOf(ReadWrite, shop, agentA), folderA, false},
		"on another folder":                    {loginOf(ReadWrite, shop, writeA, agentA), folderAB, false},
		"with a login that is not fresh":       {changed(loginOf(ReadWrite, shop, writeA, agentA), func(p *Principal) { p.AuthenticatedAt = noon.Add(-time.Hour) }), folderA, false},
	} {
		if err := MayAgentCopy(row.p, "shop", row.f, now); (err == nil) != row.want {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

func TestWhoKnowsOfAConnection(t *testing.T) {
	for sentence, row := range map[string]struct {
		p    Principal
		want bool
	}{
		"an admin":                   {admin(), true},
		"a user without a grant":     {loginOf(ReadWrite, shop), false},
		"who may write":              {loginOf(ReadWrite, writeA), true},
		"who may read":               {loginOf(ReadOnly, readA), true},
		"an admin's read_write key":  {keyOf(ReadWrite, Admin), false},
		"the same with a grant":      {changed(keyOf(ReadWrite, Admin), func(p *Principal) { p.Own = []Grant{writeA} }), true},
		"a user's key with a grant":  {changed(keyOf(ReadWrite, ReadWrite), func(p *Principal) { p.Own = []Grant{writeA} }), false},
		"an admin's key of some dbs": {with(func(p *Principal) { p.Databases = []string{"shop"} }), false},
	} {
		if got := MaySeeConnection(row.p, "local"); got != row.want {
			t.Errorf("%s: %v", sentence, got)
		}
	}
}
