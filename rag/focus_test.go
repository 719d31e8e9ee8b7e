package rag

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"sluice/sqlguard"
)

func names(relations []sqlguard.Relation) string {
	var out []string
	for _, r := range relations {
		out = append(out, r.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestFocusOnTheShop(t *testing.T) {
	k := know(t, duck(t, shopdesk(t)...), everyone)
	for name, row := range map[string]struct{ question, evidence, want string }{
		"one table by its name":             {"What is the average priority of the tickets?", "", "tickets"},
		"by a column":                       {"Which sku is the most expensive in list price?", "", "products"},
		"by a comment":                      {"How many people have gold loyalty?", "", "customers"},
		"two that are joined":               {"Which agents have never had a ticket about a defect?", "", "agents tickets"},
		"two with a table on the way":       {"Which customers paid by voucher?", "", "customers orders payments"},
		"two with the lines between":        {"Which categories were ordered over the phone?", "", "order_items orders products"},
		"by a value":                        {"How much did the Foam Mat cost us?", "", "products"},
		"by a value that evidence brings":   {"How many VIPs are there?", "a VIP is a customer of tier 'G'", "customers"},
		"a word that only one table has":    {"In which city do customers order with the highest discount?", "", "customers order_items orders"},
		"nothing, and then all are as good": {"Will it rain?", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := k.Focus(row.question, row.evidence)
			if got := names(f.Tables); got != row.want {
				t.Errorf("tables: %q, want %q; %v", got, row.want, f.Score)
			}
			if again := k.Focus(row.question, row.evidence); !reflect.DeepEqual(f, again) {
				t.Error("the same question has another focus")
			}
			for _, j := range f.Joins {
				if !slices.Contains(f.Tables, j.From.Relation) || !slices.Contains(f.Tables, j.To.Relation) {
					t.Errorf("a join leaves the tables: %v", j)
				}
			}
		})
	}
}

// Between things that many tables join: each pair has its own table between, and each word stands somewhere.
func TestFocusOnJunctions(t *testing.T) {
	k := know(t, duck(t, `CREATE TABLE film (film_id INTEGER PRIMARY KEY, title VARCHAR, minutes_long INTEGER, critics_score INTEGER, spoken_language VARCHAR, studio_id INTEGER);
		CREATE TABLE actor (actor_id INTEGER PRIMARY KEY, surname VARCHAR); CREATE TABLE genre (genre_id INTEGER PRIMARY KEY, label VARCHAR);
		CREATE TABLE studio (studio_id INTEGER PRIMARY KEY, brand VARCHAR, continent VARCHAR);
		CREATE TABLE casting (film_id INTEGER REFERENCES film(film_id), actor_id INTEGER REFERENCES actor(actor_id));
		CREATE TABLE labelled (film_id INTEGER REFERENCES film(film_id), genre_id INTEGER REFERENCES genre(genre_id));
		CREATE TABLE known_for (actor_id INTEGER REFERENCES actor(actor_id), genre_id INTEGER REFERENCES genre(genre_id));
		INSERT INTO studio VALUES (1, 'Nova', 'Asia'), (2, 'Orion', 'Europe'); INSERT INTO film VALUES (1, 'Dusk', 90, 8, 'Thai', 1), (2, 'Dawn', 80, 7, 'Czech', 2), (3, 'Noon', 80, 7, 'Czech', 2)`), everyone)
	for name, row := range map[string]struct{ question, want string }{
		"a table between each pair":    {"How many films and actors are there per genre?", "actor casting film genre known_for labelled"},
		"a word of a table far behind": {"What is the critics score and the spoken language of films by minutes long, per continent, title and film?", "film studio"},
	} {
		t.Run(name, func(t *testing.T) {
			if f := k.Focus(row.question, ""); names(f.Tables) != row.want {
				t.Errorf("tables: %q, want %q; %v", names(f.Tables), row.want, f.Score)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	k := know(t, duck(t, append(shopdesk(t), `CREATE TABLE notes (author VARCHAR, place VARCHAR, mood VARCHAR);
		INSERT INTO notes VALUES ('Étienne O''Hara', 'Saint-Denis', 'in-between'), ('Zed Young', 'Århus', 'it')`)...), everyone)
	for name, row := range map[string]struct{ question, want string }{
		"as it is stored":                {"Which orders did Ada Petrov place?", "customers.full_name=Ada Petrov exact"},
		"in another case":                {"orders of ADA PETROV", "customers.full_name=Ada Petrov exact"},
		"without accents and signs":      {"notes by etienne ohara in saint denis", "notes.author=Étienne O'Hara exact, notes.place=Saint-Denis exact"},
		"several words, not their parts": {"Was the mood in between?", "notes.mood=in-between exact"},
		"in quotes":                      {"Which orders hold a 'twin burner'?", "products.product_name=Twin Burner exact"},
		"a plural":                       {"How many sleeping bag articles are discontinued?", "products.category=Sleeping bags plural"},
		"a part of a name":               {"What has Petrov ordered?", "customers.email=ada.petrov@mail.example part, customers.full_name=Ada Petrov part"},
		"a slip of the pen":              {"tickets of Lea Fournir", "agents.agent_name=Lea Fournier near"},
		"a country by its code":          {"customers in Sweden", "customers.country_code=SE code"},
		"codes as they are written":      {"customers of DE", "customers.country_code=DE exact"},
		"a code that is also a word":     {"Was it good?", ""},
		"a column's name is no value":    {"What is the team of each agent, and the topic?", ""},
		"an ordinary word is not bent":   {"Show the lathe refinds", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, l := range k.Focus(row.question, "").Links {
				got = append(got, l.Column.Relation.Name+"."+l.Column.Column+"="+l.Value+" "+map[Match]string{Exact: "exact", Plural: "plural", Part: "part", Near: "near", Code: "code"}[l.Match])
			}
			slices.Sort(got)
			if text := strings.Join(got, ", "); text != row.want {
				t.Errorf("links: %q, want %q", text, row.want)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	k := know(t, duck(t, shopdesk(t)...), everyone)
	for name, row := range map[string]struct{ question, evidence, want string }{
		"a name that nobody has":               {"What did Waldemar Quickstep order?", "", "Waldemar Quickstep"},
		"a name of which a part is known":      {"What did Ada Quickstep order?", "", "Ada Quickstep"},
		"in quotes":                            {"How many 'snow shoes' did we sell?", "", "snow shoes"},
		"a code":                               {"How much is OD-999?", "", "OD-999"},
		"at the beginning":                     {"Waldemar Quickstep ordered what?", "", "Waldemar Quickstep"},
		"the first word of a sentence is none": {"Tickets please. Mostly those of Ada Petrov.", "", ""},
		"days and months are none":             {"Orders on Mondays in March?", "", ""},
		"words of the schema are none":         {"What is the Average List Price of Products?", "", ""},
		"words that the evidence explains":     {"What is the AOV by channel?", "AOV is the average value of an order", ""},
		"what stands inside of a value":        {"Which names end in 'trov'?", "", ""},
		"a misspelled name is found":           {"What did Ada Petrof order?", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range k.Focus(row.question, row.evidence).Missing {
				got = append(got, m.Text)
				if !m.Complete || !slices.Contains(m.Searched, column("customers", "full_name")) {
					t.Errorf("%q was looked for in %v, complete %t", m.Text, m.Searched, m.Complete)
				}
			}
			if text := strings.Join(got, ", "); text != row.want {
				t.Errorf("missing: %q, want %q", text, row.want)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	k := know(t, duck(t, shopdesk(t)...), everyone)
	for name, row := range map[string]struct {
		at            ColumnRef
		literal, want string
	}{
		"another case":                   {column("products", "category"), "tents", "Tents"},
		"endings":                        {column("products", "category"), "tent", "Tents"},
		"a part":                         {column("customers", "full_name"), "petrov", "Ada Petrov"},
		"a slip":                         {column("agents", "agent_name"), "Mira Hold", "Mira Holt"},
		"a country":                      {column("customers", "country_code"), "Germany", "DE"},
		"names are found as DuckDB does": {column("PRODUCTS", "Category"), "mats", "Mats"},
		"nothing like it":                {column("products", "category"), "kayaks", ""},
		"a value of another column":      {column("products", "category"), "Twin Burner", ""},
		"no such column":                 {column("products", "colour"), "red", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := k.Nearest(row.at, row.literal); got.Value != row.want || ok != (row.want != "") {
				t.Errorf("Nearest: %+v, %t, want %q", got, ok, row.want)
			}
		})
	}
}

func TestConnect(t *testing.T) {
	at := func(a, b string, declared bool) Join {
		return Join{From: column(a, "x"), To: column(b, "y"), Declared: declared}
	}
	for name, row := range map[string]struct {
		joins  []Join
		chosen string
		score  map[sqlguard.Relation]float64
		most   int
		want   string
	}{
		"neighbours need nothing":                  {[]Join{at("a", "b", true)}, "a b", nil, 9, "a b"},
		"the shortest way":                         {[]Join{at("a", "m", true), at("m", "b", true), at("a", "n", true), at("n", "o", true), at("o", "b", true)}, "a b", nil, 9, "a b m"},
		"through what scored":                      {[]Join{at("a", "m", true), at("m", "b", true), at("a", "n", true), at("n", "b", true)}, "a b", map[sqlguard.Relation]float64{inMain("n"): 1, inMain("a"): 2}, 9, "a b n"},
		"declared, if all else is equal":           {[]Join{at("a", "m", false), at("m", "b", false), at("a", "n", true), at("n", "b", true)}, "a b", nil, 9, "a b n"},
		"no way is no reason to leave":             {[]Join{at("a", "b", true)}, "a c", nil, 9, "a c"},
		"a table on the way that is chosen anyway": {[]Join{at("a", "m", true), at("m", "b", true)}, "a b m", nil, 9, "a b m"},
		"what does not fit is left out":            {[]Join{at("a", "m", true), at("m", "b", true)}, "a b", nil, 2, "a"},
		"a join with itself leads nowhere":         {[]Join{at("a", "a", true), at("a", "b", true)}, "a b", nil, 9, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			var chosen []sqlguard.Relation
			for _, n := range strings.Fields(row.chosen) {
				chosen = append(chosen, inMain(n))
			}
			if got := names(connect(row.joins, chosen, row.score, row.most)); got != row.want {
				t.Errorf("tables: %q, want %q", got, row.want)
			}
		})
	}
}
