package sqlguard

// sameness tells whether two names are one: DuckDB folds case, PostgreSQL's parser has done so where it must.
type sameness func(a, b string) bool

func folded(a, b string) bool  { return fold(a) == fold(b) }
func exactly(a, b string) bool { return a == b }

// table gives the table of a name as it stands in a statement, when the caller may read it. The refusal is the same for
// one that does not exist and one that the caller may not read, and names only those that the caller may.
func (r Request) table(at int, catalog, schema, name string, same sameness) (*Table, error) {
	if t := r.Catalog.find(catalog, schema, name, same); t != nil && r.May != nil && r.May(t.Relation) {
		return t, nil
	}
	shown := name
	if schema != "" {
		shown = schema + "." + shown
	}
	if catalog != "" {
		shown = catalog + "." + shown
	}
	var readable []string
	for _, t := range r.Catalog.Tables {
		if r.May == nil || !r.May(t.Relation) {
			continue
		}
		if found := r.Catalog.find("", "", t.Name, same); schema == "" && found != nil && found.Relation == t.Relation {
			readable = append(readable, t.Name)
		} else {
			readable = append(readable, t.Schema+"."+t.Name)
		}
	}
	return nil, refuse(at, kindQuery, nearest(shown, readable), "there is no table or view %q that you may read", shown)
}

// search gives the schemas that a name without one is looked for in.
func (c *Catalog) search() []string {
	if len(c.Search) > 0 {
		return c.Search
	}
	return []string{c.DefaultSchema}
}

// find gives the table of a name as it stands in a statement, or nil.
func (c *Catalog) find(catalog, schema, name string, same sameness) *Table {
	if catalog != "" && (c.Engine == "" || !same(catalog, c.Engine)) {
		return nil
	}
	search := c.search()
	if schema != "" {
		search = []string{schema}
	}
	for _, s := range search {
		for i := range c.Tables {
			if t := &c.Tables[i]; same(t.Name, name) && same(t.Schema, s) {
				return t
			}
		}
	}
	return nil
}
