package sqlguard

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// What a list says that the rules of derive do not: each entry was read in PostgreSQL's documentation or source.
var (
	// pgMixed are names with a refused overload that is harmless in a query: age(xid), length(bytea, encoding), and the forms
	// without arguments of functions that build a JSON value.
	pgMixed = strings.Fields("age length json_build_array json_build_object jsonb_build_array jsonb_build_object")
	// pgByCount are names whose refused overloads have numbers of arguments of their own: ts_rewrite with two runs SQL text.
	pgByCount = []string{"ts_rewrite"}
	// pgTelling are called immutable and tell of the server or the catalogue all the same, as do pg_partition_root, which looks
	// relations up, and whatever has to do with an aclitem, whose text is read and written with names of roles.
	pgTelling = strings.Fields("satisfies_hash_partition postgresql_fdw_validator unicode_version icu_unicode_version")
	// pgHarmless look like those that tell, and compute on their arguments; the name that convert and length take is an encoding's.
	pgHarmless = strings.Fields("pg_size_pretty pg_size_bytes convert convert_from convert_to")
	// pgSettings are stable only because they use settings that are constants of a source: time zone, language, text search
	// configuration, the looks of dates. A restricted reader may call them.
	pgSettings = strings.Fields(`age array_to_json array_to_string concat concat_ws convert convert_from convert_to date date_add date_part date_subtract date_trunc extract format
		generate_series json_agg json_agg_strict json_build_array json_build_object json_object_agg json_object_agg_strict json_object_agg_unique
		json_object_agg_unique_strict json_to_record json_to_recordset jsonb_agg jsonb_agg_strict jsonb_build_array jsonb_build_object
		jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique jsonb_object_agg_unique_strict jsonb_path_exists_tz jsonb_path_match_tz
		jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_path_query_tz jsonb_to_record jsonb_to_recordset length make_timestamptz money numeric
		overlaps phraseto_tsquery plainto_tsquery quote_literal quote_nullable row_to_json time timestamp timestamptz timetz timezone to_char
		to_date to_json to_jsonb to_number to_timestamp to_tsquery to_tsvector ts_headline websearch_to_tsquery`)
	// pgVectorPublic are pgvector's functions that its manual tells of.
	pgVectorPublic = strings.Fields(`binary_quantize cosine_distance hamming_distance inner_product jaccard_distance l1_distance l2_distance l2_norm
		l2_normalize subvector vector_dims vector_norm`)

	pgClocks    = strings.Fields("now statement_timestamp transaction_timestamp")
	pgTells     = regexp.MustCompile(`^(pg_|has_|inet_(client|server)_|current_|session_|to_reg|row_security|txid_|getdatabase|getpg|version$|(col|obj|shobj)_description|binary_upgrade)|(_to_xml|_xmlschema)$`)
	pgInternal  = regexp.MustCompile(`^(internal|cstring|trigger|event_trigger|\w+_handler|void|refcursor)$`)
	pgInOut     = regexp.MustCompile(`_(in|out|send|recv)$`)
	pgImages    = regexp.MustCompile(`^(record_image_|btrecordimage)`) // compare rows by their bytes, for what refreshes views
	pgAny       = regexp.MustCompile(`^any`)
	pgRoles     = regexp.MustCompile(`^_?aclitem$`)
	pgCatalogue = regexp.MustCompile(`^_?(oid|oidvector|reg\w+|name|aclitem|pg_lsn|xid|xid8|tid|cid|pg_snapshot|txid_snapshot|pg_node_tree)$`)

	// pgNoCast are types whose input looks something up, or that no statement needs; regconfig and regdictionary are what the
	// text search functions take, and a cast to them tells no more than that a configuration exists.
	pgNoCast   = regexp.MustCompile(`^_?(reg\w+|aclitem|pg_\w+|gtsvector|refcursor|txid_snapshot|oidvector|int2vector)$`)
	pgReadCast = regexp.MustCompile(`^_?(regconfig|regdictionary)$`)
)

// pgOverload is one function of the server's catalogue.
type pgOverload struct {
	Schema, Name, Kind, Volatile string
	Args, Defaults               int  // Args with those of WITHIN GROUP
	Variadic, Set, InOut, Public bool // InOut: input, output and such of a type, or a step of an aggregate; Public: everybody may execute it
	Types, Columns               []string
	Returns                      string
}

// readOverloads asks the server for its built-in functions and the extension's. What an administrator added is not among them.
func readOverloads(t *testing.T, conn *pgx.Conn) []pgOverload {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		WITH io AS (SELECT unnest(ARRAY[typinput, typoutput, typreceive, typsend, typmodin, typmodout, typanalyze, typsubscript]::oid[]) AS oid FROM pg_type
			UNION SELECT unnest(ARRAY[aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn, aggmtransfn, aggminvtransfn, aggmfinalfn]::oid[]) FROM pg_aggregate),
		member AS (SELECT d.objid, e.extname FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
			WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e')
		SELECT CASE WHEN m.extname IS NULL THEN 'pg_catalog' ELSE m.extname END, p.proname, p.prokind::text, p.provolatile::text,
			p.pronargs::int, p.pronargdefaults::int, p.provariadic <> 0, p.proretset,
			p.oid IN (SELECT oid FROM io), p.proacl IS NULL OR EXISTS (SELECT FROM aclexplode(p.proacl) x WHERE x.grantee = 0 AND x.privilege_type = 'EXECUTE'),
			ARRAY(SELECT t.typname::text FROM unnest(p.prorettype || coalesce(p.proallargtypes, p.proargtypes::oid[])) u JOIN pg_type t ON t.oid = u),
			ARRAY(SELECT n FROM unnest(p.proargnames, p.proargmodes) WITH ORDINALITY AS u(n, m, i) WHERE m IN ('o', 'b', 't') ORDER BY i),
			(SELECT typname FROM pg_type WHERE oid = p.prorettype)
		FROM pg_proc p LEFT JOIN member m ON m.objid = p.oid
		WHERE m.extname = 'vector' OR m.extname IS NULL AND p.pronamespace = 'pg_catalog'::regnamespace AND p.oid < 16384
		ORDER BY p.proname, p.oid`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[pgOverload])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// class decides on one overload; the first rule that fits decides. What is volatile, has effects or chance. What takes or
// gives a type of the machinery, or is the input or output of a type or a step of an aggregate, is no function for people. What is stable looks at
// something beside its arguments: at the catalogue or the session when its types or its name say so, or when it has no
// arguments and is no clock; else at settings. What is immutable computes on its arguments.
func (o pgOverload) class() pgClass {
	tells := pgTells.MatchString(o.Name) || o.Volatile == "s" && slices.ContainsFunc(o.Types, pgCatalogue.MatchString)
	tells = tells && !slices.Contains(pgHarmless, o.Name)
	switch {
	case o.Volatile == "v":
		return pgEffects
	case o.Schema == "vector" && !slices.Contains(pgVectorPublic, o.Name), o.Kind == "p", o.InOut, pgInOut.MatchString(o.Name), pgImages.MatchString(o.Name),
		slices.ContainsFunc(o.Types, pgInternal.MatchString):
		return pgInternals
	case o.Volatile == "s" && (tells || o.Args == 0 && o.Kind == "f" && !slices.Contains(pgClocks, o.Name)),
		o.Volatile == "i" && (tells || slices.Contains(pgTelling, o.Name) || slices.ContainsFunc(o.Types, pgRoles.MatchString)):
		return pgCatalogues
	}
	return pgAllowed
}

// derive makes the lists from the overloads: the names that may be called with their forms, and why the others may not.
func derive(overloads []pgOverload, schema string) (allowed map[string][]pgForm, refused map[string]pgClass) {
	allowed, refused = map[string][]pgForm{}, map[string]pgClass{}
	byName := map[string][]pgOverload{}
	for _, o := range overloads {
		if o.Schema == schema {
			byName[o.Name] = append(byName[o.Name], o)
		}
	}
	for name, all := range byName {
		var kept []pgOverload
		worst, byCount := pgAllowed, map[string]bool{}
		for _, o := range all {
			switch class := o.class(); {
			case class == pgAllowed, class == pgCatalogues && slices.Contains(pgMixed, name):
				kept = append(kept, o)
			case slices.Contains(pgByCount, name):
				byCount[o.counts()] = true
			default:
				worst = max(worst, class)
			}
		}
		kept = slices.DeleteFunc(kept, func(o pgOverload) bool { return byCount[o.counts()] })
		if len(kept) == 0 {
			worst = max(worst, pgInternals)
		}
		if worst != pgAllowed {
			refused[name] = worst
			continue
		}
		allowed[name] = forms(kept)
	}
	return allowed, refused
}

// generic tells of the allowed functions which return a value of the type of an argument, and of these which an array.
func generic(overloads []pgOverload, allowed map[string][]pgForm) map[string]bool {
	out := map[string]bool{}
	for _, o := range overloads {
		if o.Schema == "pg_catalog" && allowed[o.Name] != nil && pgAny.MatchString(o.Returns) {
			_, known := out[o.Name]
			out[o.Name] = strings.HasSuffix(o.Returns, "array") && (out[o.Name] || !known)
		}
	}
	return out
}

// forms puts overloads together that differ in types alone.
func forms(overloads []pgOverload) []pgForm {
	var out []pgForm
	more := map[string]bool{} // the counts for which an overload reads more than its arguments
	for _, o := range overloads {
		if o.Volatile != "i" && !slices.Contains(pgSettings, o.Name) {
			more[o.counts()] = true
		}
	}
	for _, o := range overloads {
		f := pgForm{kind: o.Kind[0], counts: o.counts(), reach: argumentsOnly, set: o.Set, columns: strings.Join(o.Columns, " ")}
		if more[f.counts] {
			f.reach = readsMore
		}
		i := slices.IndexFunc(out, func(g pgForm) bool {
			return g.kind == f.kind && g.reach == f.reach && g.set == f.set && g.columns == f.columns
		})
		if i < 0 {
			out = append(out, f)
			continue
		}
		counts := append(strings.Fields(out[i].counts), strings.Fields(f.counts)...)
		slices.SortFunc(counts, func(a, b string) int { return cmp.Or(cmp.Compare(count(a), count(b)), strings.Compare(b, a)) })
		if open := slices.IndexFunc(counts, func(c string) bool { return strings.HasSuffix(c, "+") }); open >= 0 {
			counts = counts[:open+1] // and the others are more
		}
		out[i].counts = strings.Join(slices.Compact(counts), " ")
	}
	slices.SortStableFunc(out, func(a, b pgForm) int {
		return strings.Compare(a.counts+string(a.kind)+a.columns, b.counts+string(b.kind)+b.columns)
	})
	return out
}

// counts tells how many arguments the overload takes: "1", "2 3" with a default, "1+" with VARIADIC.
func (o pgOverload) counts() string {
	if o.Variadic {
		return strconv.Itoa(o.Args-o.Defaults) + "+"
	}
	var out []string
	for n := o.Args - o.Defaults; n <= o.Args; n++ {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, " ")
}

func count(s string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(s, "+"))
	return n
}
