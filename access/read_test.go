package access

import "testing"

func TestWhatMayBeRead(t *testing.T) {
	for sentence, row := range map[string]struct {
		p             Principal
		db, sch, tab  string
		wantDB, wantT bool
	}{
		"nil lists do not narrow":               {admin(), "shop", "main", "orders", true, true},
		"an empty database list allows nothing": {with(func(p *Principal) { p.Databases = []string{} }), "shop", "main", "orders", false, false},
		"a listed database":                     {with(func(p *Principal) { p.Databases = []string{"shop"} }), "shop", "main", "orders", true, true},
		"a database that is not listed":         {with(func(p *Principal) { p.Databases = []string{"shop"} }), "erp", "main", "orders", false, false},
		"database names are exact":              {with(func(p *Principal) { p.Databases = []string{"shop"} }), "Shop", "main", "orders", false, false},
		"an empty table list allows nothing":    {with(func(p *Principal) { p.Tables = []string{} }), "shop", "main", "orders", true, false},
		"a full table name":                     {with(func(p *Principal) { p.Tables = []string{"shop.main.orders"} }), "shop", "main", "orders", true, true},
		"a short name means the default schema": {with(func(p *Principal) { p.Tables = []string{"shop.orders"} }), "shop", "main", "orders", true, true},
		"a short name is not of another schema": {with(func(p *Principal) { p.Tables = []string{"shop.orders"} }), "shop", "hr", "orders", true, false},
		"a table of the same name elsewhere":    {with(func(p *Principal) { p.Tables = []string{"erp.main.orders"} }), "shop", "main", "orders", true, false},
		"a table list of a database not listed": {with(func(p *Principal) { p.Databases, p.Tables = []string{"erp"}, []string{"shop.orders"} }), "shop", "main", "orders", false, false},
		"a name with a dot matches no entry":    {with(func(p *Principal) { p.Tables = []string{"shop.main.orders"} }), "shop", "main.orders", "x", true, false},
		"a dotted table is not a qualified one": {with(func(p *Principal) { p.Tables = []string{"shop.main.orders"} }), "shop", "main", "main.orders", true, false},
		"a bare name is no entry":               {with(func(p *Principal) { p.Tables = []string{"orders"} }), "shop", "main", "orders", true, false},
		"no schema":                             {admin(), "shop", "", "orders", true, false},
		"no table":                              {admin(), "shop", "main", "", true, false},
		"an admin's read_only key reads":        {keyOf(ReadOnly, Admin), "shop", "main", "orders", true, true},
		"an admin's restricted key reads":       {keyOf(Restricted, Admin), "shop", "main", "orders", true, true},
		"a restricted user without grants":      {loginOf(Restricted), "shop", "main", "orders", false, false},
		"a restricted user with a database":     {loginOf(Restricted, shop), "shop", "main", "orders", true, true},
		"a restricted user with a table":        {loginOf(Restricted, orders), "shop", "main", "orders", true, true},
		"a restricted user and another table":   {loginOf(Restricted, orders), "shop", "main", "pay", true, false},
		"a restricted key of some tables":       {changed(keyOf(Restricted, ReadOnly, shop), func(p *Principal) { p.Tables = []string{"shop.pay"} }), "shop", "main", "orders", true, false},
		"an agent reads":                        {with(func(p *Principal) { p.Agent = true }), "shop", "main", "orders", true, true},
		"no database":                           {admin(), "", "main", "orders", false, false},

		"a user without grants":                    {loginOf(ReadOnly), "shop", "main", "orders", false, false},
		"a user who may write, without grants":     {loginOf(ReadWrite), "shop", "main", "orders", false, false},
		"an admin who logged in, without grants":   {loginOf(Admin), "shop", "main", "orders", true, true},
		"a database grant":                         {loginOf(ReadOnly, shop), "shop", "hr", "pay", true, true},
		"a grant on another database":              {loginOf(ReadOnly, erp), "shop", "main", "orders", false, false},
		"a table grant":                            {loginOf(ReadOnly, orders), "shop", "main", "orders", true, true},
		"a table grant is on one table":            {loginOf(ReadOnly, orders), "shop", "main", "pay", true, false},
		"a table grant in a schema":                {loginOf(ReadOnly, hrPay), "shop", "hr", "pay", true, true},
		"a table grant is of its schema":           {loginOf(ReadOnly, hrPay), "shop", "main", "pay", true, false},
		"grants on lakes are none on tables":       {loginOf(ReadWrite, writeA, readA, agentA), "shop", "main", "orders", false, false},
		"a grant of no kind":                       {loginOf(ReadOnly, Grant{Database: "shop", Table: "orders"}), "shop", "main", "orders", false, false},
		"a table grant without a table":            {loginOf(ReadOnly, Grant{Kind: GrantTable, Database: "shop"}), "shop", "main", "orders", true, false},
		"an empty database grant":                  {loginOf(ReadOnly, Grant{Kind: GrantDatabase}), "", "main", "orders", false, false},
		"a user's key":                             {keyOf(ReadOnly, ReadOnly, orders), "shop", "main", "orders", true, true},
		"a user's admin key is no admin's":         {keyOf(Admin, ReadOnly), "shop", "main", "orders", false, false},
		"a key's list adds nothing to the owner's": {changed(keyOf(ReadOnly, ReadOnly, orders), func(p *Principal) { p.Tables = []string{"shop.pay"} }), "shop", "main", "pay", true, false},
		"a key's list takes from the owner's":      {changed(keyOf(ReadOnly, ReadOnly, shop), func(p *Principal) { p.Tables = []string{"shop.pay"} }), "shop", "main", "orders", true, false},
		"a key's list within the owner's":          {changed(keyOf(ReadOnly, ReadOnly, shop), func(p *Principal) { p.Tables = []string{"shop.pay"} }), "shop", "main", "pay", true, true},
		"a key's database list adds nothing":       {changed(keyOf(ReadOnly, ReadOnly, erp), func(p *Principal) { p.Databases = []string{"shop"} }), "shop", "main", "orders", false, false},
		"a grant to a key adds nothing":            {changed(keyOf(ReadOnly, ReadOnly), func(p *Principal) { p.Own = []Grant{shop} }), "shop", "main", "orders", false, false},
		"a grant to a key narrows it":              {changed(keyOf(ReadOnly, Admin), func(p *Principal) { p.Own = []Grant{orders} }), "shop", "main", "pay", true, false},
		"a grant to a key, what it is on":          {changed(keyOf(ReadOnly, Admin), func(p *Principal) { p.Own = []Grant{orders} }), "shop", "main", "orders", true, true},
		"a grant to a key, another database":       {changed(keyOf(ReadOnly, Admin), func(p *Principal) { p.Own = []Grant{orders} }), "erp", "main", "orders", false, false},
		"a lake grant to a key narrows no reading": {changed(keyOf(ReadWrite, Admin), func(p *Principal) { p.Own = []Grant{writeA} }), "erp", "main", "orders", true, true},
		"acting for somebody: both must have it": {changed(keyOf(ReadOnly, ReadOnly, shop), func(p *Principal) {
			p.Holders = append(p.Holders, Holder{User: "bob", Role: ReadOnly, Grants: []Grant{orders}})
		}), "shop", "main", "orders", true, true},
		"acting for somebody: the first has it not": {changed(keyOf(ReadOnly, ReadOnly, orders), func(p *Principal) {
			p.Holders = append(p.Holders, Holder{User: "bob", Role: ReadOnly, Grants: []Grant{shop}})
		}), "shop", "main", "pay", true, false},
		"acting for an admin with a reader's key": {changed(keyOf(ReadOnly, Admin), func(p *Principal) {
			p.Holders = append(p.Holders, Holder{User: "bob", Role: ReadOnly, Grants: []Grant{orders}})
		}), "shop", "main", "pay", true, false},
	} {
		if got := MayDatabase(row.p, row.db); got != row.wantDB {
			t.Errorf("%s: database %v", sentence, got)
		}
		if got := MayRead(row.p, row.db, "main")(row.sch, row.tab); got != row.wantT {
			t.Errorf("%s: table %v", sentence, got)
		}
		if whole := MayWhole(row.p, row.db); whole && (!row.wantDB || !MayRead(row.p, row.db, "main")("any", "thing")) {
			t.Errorf("%s: all of it", sentence)
		}
	}
	tables := []string{"shop.orders"}
	may := MayRead(with(func(p *Principal) { p.Tables = tables }), "shop", "main")
	tables[0] = "shop.pay"
	if may("main", "pay") || !may("main", "orders") {
		t.Error("a test changes with the list that it was made of")
	}
}

// TestATableWithoutASchemaIsOneTable: a name in a grant or a list stands for one table, whatever schemas the database has.
func TestATableWithoutASchemaIsOneTable(t *testing.T) {
	for sentence, p := range map[string]Principal{
		"a grant":      loginOf(ReadOnly, orders),
		"a key's own":  changed(keyOf(ReadOnly, Admin), func(p *Principal) { p.Own = []Grant{orders} }),
		"a key's list": with(func(p *Principal) { p.Tables = []string{"shop.orders"} }),
	} {
		for _, schema := range []string{"main", "public", "sales", ""} {
			may := MayRead(p, "shop", schema)
			for _, other := range []string{"main", "public", "sales", "hr"} {
				if got := may(other, "orders"); got != (other == schema) {
					t.Errorf("%s, with the default schema %q: %s.orders %v", sentence, schema, other, got)
				}
			}
		}
	}
}

// TestTheKindOfReading: the lowest role behind a principal decides, and nothing else does.
func TestTheKindOfReading(t *testing.T) {
	actingFor := func(key, owner, person Role) Principal {
		return changed(keyOf(key, person, shop), func(p *Principal) {
			p.Agent, p.Holders = true, append(p.Holders, Holder{User: "owner", Role: owner, Grants: []Grant{shop}})
		})
	}
	for sentence, row := range map[string]struct {
		p    Principal
		want Reading
	}{
		"an admin's key":                            {admin(), FullReading},
		"a reader":                                  {loginOf(ReadOnly), FullReading},
		"a writer's read_only key":                  {keyOf(ReadOnly, ReadWrite), FullReading},
		"a reader's agent key":                      {changed(keyOf(ReadOnly, ReadOnly), func(p *Principal) { p.Agent = true }), FullReading},
		"a restricted user":                         {loginOf(Restricted, shop), RestrictedReading},
		"a restricted user's admin key":             {keyOf(Admin, Restricted, shop), RestrictedReading},
		"an admin's restricted key":                 {keyOf(Restricted, Admin), RestrictedReading},
		"the same, narrowed":                        {changed(keyOf(Restricted, Admin), func(p *Principal) { p.Tables = []string{} }), RestrictedReading},
		"acting for a restricted user":              {actingFor(ReadWrite, Admin, Restricted), RestrictedReading},
		"acting for an admin, of a restricted user": {actingFor(ReadWrite, Restricted, Admin), RestrictedReading},
		"a restricted key, acting for an admin":     {actingFor(Restricted, Admin, Admin), RestrictedReading},
		"acting for a reader":                       {actingFor(ReadWrite, Admin, ReadOnly), FullReading},
		"acting for who has no role":                {actingFor(ReadWrite, Admin, NoRole), NoReading},
		"nobody":                                    {Principal{}, NoReading},
		"a role that nobody knows":                  {keyOf(99, Admin), NoReading},
		"a role that is none":                       {keyOf(-1, Admin), NoReading},
	} {
		if got := ReadingOf(row.p); got != row.want {
			t.Errorf("%s: %v", sentence, got)
		}
		if err := MayQuery(row.p); (err == nil) != (row.want != NoReading) {
			t.Errorf("%s: %v", sentence, err)
		}
		if row.want == RestrictedReading { // it reads, and that is all
			for what, err := range map[string]error{"copy": MayCopy(row.p, "shop", folderA, now), "external": MayExternal(row.p, "shop", now), "read a lake": MayReadLake(row.p, folderA)} {
				denied(t, sentence+": "+what, err)
			}
		}
	}
}

func TestModels(t *testing.T) {
	model := func(name string) Grant { return Grant{Kind: GrantModel, Name: name} }
	for sentence, row := range map[string]struct {
		p     Principal
		model string
		want  bool
	}{
		"nil does not narrow":            {admin(), "qwen2.5:7b", true},
		"an empty list allows nothing":   {with(func(p *Principal) { p.Models = []string{} }), "qwen2.5:7b", false},
		"a listed model":                 {with(func(p *Principal) { p.Models = []string{"qwen2.5:7b"} }), "qwen2.5:7b", true},
		"another tag":                    {with(func(p *Principal) { p.Models = []string{"qwen2.5:7b"} }), "qwen2.5:0.5b", false},
		"no tag means latest":            {with(func(p *Principal) { p.Models = []string{"phi"} }), "phi:latest", true},
		"a port is not a tag":            {with(func(p *Principal) { p.Models = []string{"host:80/a/phi"} }), "host:80/a/phi:latest", true},
		"the empty name":                 {admin(), "", false},
		"an empty entry matches nothing": {with(func(p *Principal) { p.Models = []string{""} }), ":latest", false},
		"case does not matter":           {with(func(p *Principal) { p.Models = []string{"Phi"} }), "phi:latest", true},

		"a user without grants on models uses all": {loginOf(ReadOnly), "phi", true},
		"restricted ones too":                      {loginOf(Restricted), "phi", true},
		"grants on other things do not narrow":     {loginOf(ReadOnly, shop), "phi", true},
		"one grant narrows to its model":           {loginOf(ReadOnly, model("phi")), "qwen2.5:7b", false},
		"and gives that":                           {loginOf(ReadOnly, model("phi")), "phi:latest", true},
		"a grant on nothing allows nothing":        {loginOf(ReadOnly, model("")), "phi", false},
		"an admin is not narrowed":                 {loginOf(Admin, model("phi")), "qwen2.5:7b", true},
		"a key's list and its owner's grant":       {changed(keyOf(ReadOnly, ReadOnly, model("phi")), func(p *Principal) { p.Models = []string{"qwen2.5:7b"} }), "qwen2.5:7b", false},
		"a grant to an admin's key narrows it":     {changed(admin(), func(p *Principal) { p.Own = []Grant{model("phi")} }), "qwen2.5:7b", false},
		"acting for somebody narrows": {with(func(p *Principal) {
			p.Holders = append(p.Holders, Holder{User: "b", Role: ReadOnly, Grants: []Grant{model("phi")}})
		}), "qwen2.5:7b", false},
	} {
		if got := MayModel(row.p, row.model); got != row.want {
			t.Errorf("%s: got %v", sentence, got)
		}
	}
}

func TestCollections(t *testing.T) {
	c := func(name, access string) Grant { return Grant{Kind: GrantCollection, Name: name, Access: access} }
	for sentence, row := range map[string]struct {
		p           Principal
		read, write bool
	}{
		"an admin":                    {admin(), true, true},
		"an admin's agent key":        {with(func(p *Principal) { p.Agent = true }), true, false},
		"a user without grants":       {loginOf(ReadWrite), false, false},
		"who may read":                {loginOf(ReadWrite, c("manuals", "read")), true, false},
		"who may write":               {loginOf(ReadWrite, c("manuals", "write")), true, true},
		"a reader with a write grant": {loginOf(ReadOnly, c("manuals", "write")), true, false},
		"another collection":          {loginOf(ReadWrite, c("other", "write")), false, false},
		"an access that is none":      {loginOf(ReadWrite, c("manuals", "")), false, false},
		"a key's own grant narrows":   {with(func(p *Principal) { p.Own = []Grant{c("other", "write")} }), false, false},
	} {
		if read, write := MayCollection(row.p, "manuals", false), MayCollection(row.p, "manuals", true); read != row.read || write != row.write {
			t.Errorf("%s: read %v, write %v", sentence, read, write)
		}
	}
}
