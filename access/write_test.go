package access

import "testing"

// TestWhoMayWrite: a database grant, the role read_write, and neither an agent nor a narrower view of the database.
func TestWhoMayWrite(t *testing.T) {
	for sentence, row := range map[string]struct {
		p    Principal
		want bool
	}{
		"an admin's key":                    {admin(), true},
		"a writer's login":                  {loginOf(ReadWrite, shop), true},
		"a writer's login of long ago":      {changed(loginOf(ReadWrite, shop), func(p *Principal) { p.AuthenticatedAt = noon.AddDate(0, 0, -1) }), true},
		"his key":                           {keyOf(ReadWrite, ReadWrite, shop), true},
		"a reader":                          {loginOf(ReadOnly, shop), false},
		"a reader's read_write key":         {keyOf(ReadWrite, ReadOnly, shop), false},
		"a writer's read_only key":          {keyOf(ReadOnly, ReadWrite, shop), false},
		"a writer's restricted key":         {keyOf(Restricted, ReadWrite, shop), false},
		"a restricted user's admin key":     {keyOf(Admin, Restricted, shop), false},
		"without a grant":                   {loginOf(ReadWrite), false},
		"with one on another database":      {loginOf(ReadWrite, erp), false},
		"with one on a table":               {loginOf(ReadWrite, orders), false},
		"with lake grants only":             {loginOf(ReadWrite, writeA, readA), false},
		"a key restricted to tables":        {changed(keyOf(ReadWrite, ReadWrite, shop), func(p *Principal) { p.Tables = []string{"shop.orders"} }), false},
		"an admin's key restricted to them": {with(func(p *Principal) { p.Tables = []string{"shop.orders"} }), false},
		"a key of another database":         {changed(keyOf(ReadWrite, ReadWrite, shop), func(p *Principal) { p.Databases = []string{"erp"} }), false},
		"a key narrowed to a table":         {changed(admin(), func(p *Principal) { p.Own = []Grant{orders} }), false},
		"an agent's key":                    {changed(keyOf(ReadWrite, ReadWrite, shop), func(p *Principal) { p.Agent = true }), false},
		"an admin's agent key":              {with(func(p *Principal) { p.Agent = true }), false},
		"for two, one is only a reader": {changed(loginOf(ReadWrite, shop), func(p *Principal) {
			p.Holders = append(p.Holders, Holder{User: "b", Role: ReadOnly, Grants: []Grant{shop}})
		}), false},
		"for two, one has no grant": {changed(loginOf(ReadWrite, shop), func(p *Principal) { p.Holders = append(p.Holders, Holder{User: "b", Role: ReadWrite}) }), false},
		"nobody":                    {Principal{}, false},
	} {
		if err := MayWrite(row.p, "shop"); (err == nil) != row.want {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	if MayWrite(admin(), "") == nil {
		t.Error("a database without a name")
	}
}
