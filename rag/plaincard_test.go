package rag

import (
	"os"
	"slices"
	"testing"
)

func shop() []Table {
	return []Table{
		{
			Name: "orders", Comment: "one row an order",
			Columns: []Column{
				{Name: "order_id", Type: "INTEGER", NotNull: true},
				{Name: "customer_id", Type: "INTEGER", NotNull: true},
				{Name: "ordered_at", Type: "TIMESTAMP", NotNull: true},
				{Name: "status", Type: "VARCHAR", NotNull: true, Comment: "it's NEW,\nPAID; CANC = cancelled"},
				{Name: "order", Type: "INTEGER"},
			},
			PrimaryKey: []string{"order_id"},
			Foreign:    []ForeignKey{{Columns: []string{"customer_id"}, Table: "customers", Referenced: []string{"customer_id"}}},
		},
		{
			Name:       "order_items",
			Columns:    []Column{{Name: "order_id", Type: "INTEGER", NotNull: true}, {Name: "line no", Type: "INTEGER", NotNull: true}, {Name: "price", Type: "DECIMAL(10,2)"}},
			PrimaryKey: []string{"order_id", "line no"},
			Foreign:    []ForeignKey{{Columns: []string{"order_id"}, Table: "orders", Referenced: []string{"order_id"}}},
		},
		{Name: "customers", Columns: []Column{{Name: "customer_id", Type: "INTEGER", NotNull: true}, {Name: "full_name", Type: "VARCHAR"}}, PrimaryKey: []string{"customer_id"}},
		{
			Schema: "lake", Name: "events",
			Columns: []Column{{Name: "a", Type: "INTEGER"}, {Name: "b", Type: "INTEGER", Comment: "second half"}},
			Foreign: []ForeignKey{{Columns: []string{"a", "b"}, Schema: "lake", Table: "Pairs 1", Referenced: []string{"x", "y"}}},
		},
	}
}

func TestPlainCardGolden(t *testing.T) {
	got := Card(shop())
	if *rewrite {
		if err := os.WriteFile("testdata/card.golden", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/card.golden")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the card changed; every cached prefix with it. Got:\n%s\nwant:\n%s", got, want)
	}
}

func TestPlainCardIsTheSameWhateverTheOrderOfTables(t *testing.T) {
	want := Card(shop())
	tables := shop()
	for range len(tables) {
		tables = append(tables[1:], tables[0])
		before := slices.Clone(tables)
		if got := Card(tables); got != want {
			t.Fatalf("another order of tables gives another card:\n%s", got)
		}
		for i := range before {
			if before[i].Name != tables[i].Name {
				t.Fatal("Card sorted its caller's slice")
			}
		}
	}
}

func TestIdentifier(t *testing.T) {
	for name, row := range map[string]struct{ in, want string }{
		"a plain name is bare":              {"orders", "orders"},
		"mixed case is bare":                {"sbTxStatus", "sbTxStatus"},
		"a reserved word is quoted":         {"Order", `"Order"`},
		"a blank is quoted":                 {"line no", `"line no"`},
		"a leading digit is quoted":         {"2024", `"2024"`},
		"a quote inside is doubled":         {`a"b`, `"a""b"`},
		"the empty name is quoted":          {"", `""`},
		"letters outside ASCII are quoted":  {"größe", `"größe"`},
		"a name that tries to be a comment": {"a--b", `"a--b"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Identifier(row.in); got != row.want {
				t.Errorf("Identifier(%q) = %s, want %s", row.in, got, row.want)
			}
		})
	}
}
