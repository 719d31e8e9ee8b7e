package duckdb

import (
	"context"
	"errors"
	"slices"
	"strings"

	"sluice/fault"
	"sluice/sqlguard"
)

// agrees compares the engine's plan of an approved statement with what the gate found in it.
func (in *instance) agrees(ctx context.Context, cat *sqlguard.Catalog, a sqlguard.Approved) error {
	p, err := in.planOf(ctx, a.Bindable())
	switch {
	case err != nil:
		return err
	case p.failed == "catalog", p.mistaken() && a.Bindable() == a.SQL():
		return mistake(p, readsView(cat, a))
	case p.fails():
		return nil // with the values of its parameters it may bind; if not, running it says why
	case p.failed != "":
		f := fault.New(fault.Refused, "database.Approve", "the engine gives no plan of the statement to check")
		f.Kind, f.Hint, f.Err = "query", "write it in a simpler way", errors.New("database: no plan: "+p.failed)
		return f
	}
	behind, err := in.behindViews(ctx, cat, a)
	if err != nil {
		return err
	}
	for _, found := range p.scans() {
		table := sqlguard.Relation{Schema: found.schema, Name: found.table}
		switch {
		case found.function == "seq_scan" && found.catalog == cat.Engine && slices.Contains(a.Relations(), table):
		case slices.Contains(tableFunctions, found.function):
		case slices.Contains(behind, found):
		default:
			return fault.Bug("the engine reads %q in an approved statement, which the gate did not see", found)
		}
	}
	return nil
}

// mistake is the answer to a statement that the engine cannot bind: a name that it does not find where the gate cannot
// look, types that do not fit.
func mistake(p plan, view bool) error {
	text, _, _ := strings.Cut(p.text, "\n")
	if view {
		text = hiddenByView
	}
	f := fault.New(fault.Invalid, "database.Approve", "the statement is wrong: %s", strings.TrimSpace(text))
	f.Kind = "query"
	if p.near != "" && p.failed != "catalog" && !view { // the catalogue has names that are nobody's business
		f.Hint = "did you mean " + p.near + "?"
	}
	return f
}

func readsView(cat *sqlguard.Catalog, a sqlguard.Approved) bool {
	return slices.ContainsFunc(cat.Tables, func(t sqlguard.Table) bool { return t.View && slices.Contains(a.Relations(), t.Relation) })
}

// tableFunctions are what a plan may read that is no table: the functions that the gate lets into FROM, and what the
// engine makes of some of them.
var tableFunctions = []string{"range", "generate_series", "unnest"}

// behindViews gives what the views of the statement read.
func (in *instance) behindViews(ctx context.Context, cat *sqlguard.Catalog, a sqlguard.Approved) ([]scan, error) {
	var out []scan
	for _, t := range cat.Tables {
		if !t.View || !slices.Contains(a.Relations(), t.Relation) {
			continue
		}
		p, err := in.planOf(ctx, "SELECT * FROM "+quoteName(cat.Engine)+"."+quoteName(t.Schema)+"."+quoteName(t.Name))
		if err != nil {
			return nil, err
		}
		out = append(out, p.scans()...)
	}
	return out, nil
}

// types gives the types of the marked expressions of a text, for the gate.
func (in *instance) types(ctx context.Context, sql, mark string) (map[string][]string, error) {
	p, err := in.planOf(ctx, sql)
	if err != nil {
		return nil, err
	}
	return p.marked(mark), nil
}
