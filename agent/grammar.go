package agent

import (
	"slices"
	"strings"

	"sluice/rag"
	"sluice/sqlguard"
)

// maxGrammar bounds a grammar, in bytes: engines take 64 KiB. A schema that needs more is asked about without one.
const maxGrammar = 60 << 10

// What both grammars have in common. Keywords and functions are written in capitals and names that the model makes up in small
// letters, so that no text can be read in two ways: an engine follows all of them at once. sp is where a space must be, ws where it may.
const common = `sp ::= [ \n] " "*
ws ::= " "?
core ::= select (sp setop sp select)*
setop ::= "UNION" (" ALL")? | "EXCEPT" | "INTERSECT"
select ::= "SELECT" sp ("DISTINCT" sp)? item ("," sp? item)* sp "FROM" sp from (sp "WHERE" sp cond)? (sp "GROUP BY" sp group ("," sp? group)* (sp "HAVING" sp cond)?)?
order ::= sp "ORDER BY" sp sort ("," sp? sort)*
direction ::= (sp ("ASC" | "DESC"))? (sp "NULLS" sp ("FIRST" | "LAST"))?
limit ::= sp "LIMIT" sp int (sp "OFFSET" sp int)?
cond ::= not? sum compare? (sp ("AND" | "OR") sp not? sum compare?)*
not ::= "NOT" sp
compare ::= ws ("=" | "<>" | "!=" | "<=" | ">=" | "<" | ">" | "~" "*"?) ws sum | sp "IS" sp not? ("NULL" | "TRUE" | "FALSE" | "DISTINCT FROM" sp sum) | sp not? (("LIKE" | "ILIKE") sp sum | "BETWEEN" sp sum sp "AND" sp sum | "IN" sp? "(" (query | sum ("," ws sum)*) ")")
sum ::= atom cast* (ws ("+" | "-" | "*" | "/" | "||" | "%") ws atom cast*)*
cast ::= "::" type
type ::= "FLOAT" | "DOUBLE PRECISION" | "NUMERIC" precision? | "DECIMAL" precision? | "INTEGER" | "INT" | "BIGINT" | "DATE" | "TEXT" | "VARCHAR" | "TIMESTAMP" | "BOOLEAN" | "INTERVAL" | "TIME" | "REAL" | "float" | "numeric" | "decimal" | "integer" | "int" | "bigint" | "date" | "text" | "varchar" | "timestamp"
precision ::= "(" int ("," ws int)? ")"
case ::= "CASE" (sp cond)? (sp "WHEN" sp cond sp "THEN" sp cond)+ (sp "ELSE" sp cond)? sp "END"
constant ::= str | num | "NULL" | "TRUE" | "FALSE" | "CURRENT_DATE" | ("DATE" | "TIMESTAMP") sp str | "INTERVAL" sp (str | num) (sp unit)?
unit ::= ("YEAR" | "MONTH" | "DAY" | "HOUR" | "MINUTE" | "SECOND" | "WEEK") "S"?
field ::= "YEAR" | "MONTH" | "DAY" | "QUARTER" | "WEEK" | "HOUR" | "MINUTE" | "SECOND" | "DOW" | "ISODOW" | "DOY" | "EPOCH" | "CENTURY" | "DECADE"
special ::= "EXTRACT" "(" field sp "FROM" sp sum ")" | "CAST" "(" cond sp "AS" sp type ")"
call ::= (function "(" (("DISTINCT" sp)? cond ("," ws cond)* order?)? ")" | "COUNT(*)" | ("PERCENTILE_CONT" | "PERCENTILE_DISC" | "MODE") "(" num? ")" sp "WITHIN GROUP" sp? "(ORDER BY" sp sort ")") (sp "FILTER" sp? "(WHERE" sp cond ")")? (sp "OVER" sp? "(" ws window ws ")")?
window ::= ("PARTITION BY" sp sum ("," ws sum)* (sp sorted)? | sorted)?
sorted ::= "ORDER BY" sp sort ("," sp sort)* (sp ("ROWS" | "RANGE") sp "BETWEEN" sp bound sp "AND" sp bound)?
bound ::= "UNBOUNDED PRECEDING" | "UNBOUNDED FOLLOWING" | "CURRENT ROW" | num sp ("PRECEDING" | "FOLLOWING")
str ::= "'" ([^'\n\x00] | "''")* "'"
num ::= [0-9]+ ("." [0-9]+)?
int ::= [0-9]+
ident ::= [a-z_] [a-z0-9_]*
`

// What makes the grammar of a focus: each column is written with its table, tables are joined on known joins alone, and a
// subquery is called sub1 and the like.
const focused = `query ::= core order? limit?
item ::= cond (sp "AS" sp ident)?
group ::= sum | ident
sort ::= (sum | ident) direction
atom ::= "-"? (column | derived "." ident | constant | call | special | case | "(" ws (query | cond) ws ")") | "EXISTS" sp? "(" query ")"
subquery ::= "(" ws query ws ")" sp ("AS" sp)? derived
derived ::= "sub" [0-9]
from ::= source (sp ("INNER " | "LEFT ")? "JOIN" sp source sp "ON" sp on (sp "AND" sp on)*)*
`

// What makes the wide grammar: aliases, WITH at the beginning, any condition of a join, columns with and without their tables.
const wide = `query ::= core order? limit?
clause ::= "WITH" sp ("RECURSIVE" sp)? with ("," sp with)* sp
with ::= derived (ws "(" ident ("," ws ident)* ")")? sp "AS" sp? "(" ws query ws ")"
item ::= "*" | name "." "*" | cond (sp "AS" sp ident)?
group ::= sum
sort ::= sum direction
atom ::= "-"? (name ("." name)? | constant | call | special | case | "(" ws (query | cond ("," ws cond)*) ws ")") | "EXISTS" sp? "(" query ")"
from ::= source (("," | sp joining? "JOIN") sp source (sp ("ON" sp cond | "USING" sp? "(" name ("," ws name)* ")"))?)*
joining ::= "INNER " | ("LEFT" | "RIGHT" | "FULL") " " ("OUTER ")? | "CROSS "
source ::= (relation | "(" ws query ws ")" | ("LATERAL" sp) "(" ws query ws ")" | series "(" cond ("," ws cond)* ")") (sp ("AS" sp)? ident (ws "(" ident ("," ws ident)* ")")?)?
series ::= "GENERATE_SERIES" | "UNNEST" | "RANGE"
`

// The functions that the grammars have: those that models use and that both gates let a restricted reader call, and those
// of one dialect.
const (
	sharedFunctions = `count sum avg min max round coalesce nullif lower upper length abs date_trunc date_part concat concat_ws substring
		string_agg array_agg floor ceil ceiling greatest least stddev stddev_samp stddev_pop variance var_pop var_samp corr replace split_part trim
		ltrim rtrim left right strpos reverse repeat lpad rpad power sqrt exp ln log mod sign trunc initcap
		row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
		bool_and bool_or regexp_replace make_date to_timestamp starts_with`
	duckdbFunctions = `strftime strptime date_diff datediff median year month day quarter week hour minute second dayname monthname
		dayofweek substr ifnull instr contains any_value arg_max arg_min list count_if quantile_cont regexp_matches regexp_extract last_day epoch age`
	postgresFunctions = `to_char to_date to_number age substr char_length regexp_match`
)

func functions(d sqlguard.Dialect) []string {
	names := strings.Fields(sharedFunctions)
	if d == sqlguard.DuckDB {
		names = append(names, strings.Fields(duckdbFunctions)...)
	} else {
		names = append(names, strings.Fields(postgresFunctions)...)
	}
	for i, n := range names {
		names[i] = strings.ToUpper(n)
	}
	return names
}

// cannotForm is how a model says that a question cannot be answered.
const cannotForm = `"-- CANNOT: " [^\n\x00]+`

func start(g *gbnf, before string, cannot bool) {
	root := before + `query ";"?`
	if cannot {
		root += " | " + cannotForm
	}
	g.rule("root", root)
}

// focusGrammar writes the grammar of statements over the tables of a focus. It is "" when there is no table, or when it
// would be too long.
func focusGrammar(k *rag.Knowledge, tables []sqlguard.Relation, joins []rag.Join, d sqlguard.Dialect, cannot bool) string {
	var names, columns, on []string
	second := map[sqlguard.Relation]string{} // a table that is joined with itself has a second name
	for _, j := range joins {
		if r := j.From.Relation; r == j.To.Relation {
			second[r] = "other_" + strings.ToLower(plainName(r.Name))
		}
	}
	for _, r := range tables {
		t, ok := k.Table(r)
		if !ok {
			continue
		}
		names = append(names, k.Name(r))
		prefixes := []string{k.Identifier(r.Name) + "."}
		if alias := second[r]; alias != "" {
			names = append(names, k.Name(r)+" AS "+alias)
			prefixes = append(prefixes, alias+".")
		}
		for _, c := range t.Columns {
			for _, p := range prefixes {
				columns = append(columns, p+k.Identifier(c.Name))
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	equal := func(a, b string) { on = append(on, a+" = "+b, b+" = "+a) }
	for _, j := range joins {
		from, to := k.Identifier(j.From.Relation.Name)+"."+k.Identifier(j.From.Column), k.Identifier(j.To.Relation.Name)+"."+k.Identifier(j.To.Column)
		if alias := second[j.From.Relation]; alias != "" && j.From.Relation == j.To.Relation {
			equal(from, alias+"."+k.Identifier(j.To.Column))
			equal(alias+"."+k.Identifier(j.From.Column), to)
			continue
		}
		equal(from, to)
	}
	g := &gbnf{}
	start(g, "", cannot)
	g.rule("source", oneOf(names)+" | subquery")
	g.rule("column", oneOf(columns))
	g.rule("function", oneOf(functions(d)))
	side := `derived "." ident ws "=" ws (column | derived "." ident) | column ws "=" ws derived "." ident`
	if len(on) > 0 {
		side = oneOf(on) + " | " + side
	}
	g.rule("on", side)
	return fits(common + focused + g.String())
}

// wideGrammar writes the grammar of any query over the tables that the asker may read. It knows columns as words only, so
// that aliases and the columns of subqueries are there too; what stands in FROM is one of the tables, or a name that WITH
// gave out of a list that has no table's name in it. taken says which names tables have, those included that he may not read.
func wideGrammar(k *rag.Knowledge, d sqlguard.Dialect, taken func(name string) bool, cannot bool) string {
	var tables, odd []string
	relations := k.Relations()
	if len(relations) == 0 {
		return ""
	}
	for _, r := range relations {
		tables = append(tables, k.Name(r))
		t, _ := k.Table(r)
		odd = append(odd, k.Identifier(r.Name))
		for _, c := range t.Columns {
			odd = append(odd, k.Identifier(c.Name))
		}
	}
	odd = slices.DeleteFunc(odd, small)
	derived := slices.DeleteFunc(derivedNames(relations), taken)
	g := &gbnf{}
	start(g, "clause? ", cannot)
	name := "ident"
	if len(odd) > 0 {
		name += " | " + oneOf(odd)
	}
	g.rule("name", name)
	g.rule("derived", oneOf(derived))
	g.rule("relation", oneOf(append(tables, derived...)))
	g.rule("function", oneOf(functions(d)))
	return fits(common + wide + g.String())
}

// derivedNames are the names that WITH may give: general ones, and those made of the tables' own.
func derivedNames(relations []sqlguard.Relation) []string {
	var out []string
	for _, w := range strings.Fields(`sub cte t r base data result results filtered ranked totals counts sums averages avg_values stats summary joined
		monthly yearly daily weekly quarterly latest earliest first last previous current best worst top max_values min_values grouped selected
		recent active combined numbered months days years recursive_data total avg_cte ranked_data monthly_counts monthly_totals monthly_sales`) {
		out = append(out, w, w+"1", w+"2", w+"3")
	}
	for _, r := range relations {
		if n := strings.ToLower(plainName(r.Name)); small(n) {
			for _, form := range []string{"%_count", "%_counts", "%_total", "%_totals", "%_stats", "ranked_%", "%_ranked", "filtered_%", "latest_%", "top_%", "max_%", "monthly_%", "%_summary", "%_data", "%_cte"} {
				out = append(out, strings.ReplaceAll(form, "%", n))
			}
		}
	}
	return out
}

// small says whether the rule ident writes a name.
func small(name string) bool {
	return name != "" && !digit(name[0]) && strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_')
	}) < 0
}

// plainName makes a name of letters, digits and underscores.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r < 0x80 && (letter(byte(r)) || digit(byte(r))) {
			return r
		}
		return '_'
	}, name)
}

func fits(grammar string) string {
	if len(grammar) > maxGrammar {
		return ""
	}
	return grammar
}

// takenIn says which names tables of a catalogue have, whoever may read them.
func takenIn(c *sqlguard.Catalog) func(string) bool {
	names := map[string]bool{}
	for _, t := range c.Tables {
		names[strings.ToLower(t.Name)] = true
	}
	return func(name string) bool { return names[strings.ToLower(name)] }
}
