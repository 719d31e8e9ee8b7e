package duckdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"sluice/fault"
)

// plan is what the engine makes of a text on the source's own catalogue: the tables it reads and the types of its
// expressions, before anything runs.
type plan struct {
	tree   any    // the bound, not optimised plan
	failed string // the class of the engine's error when the text does not bind, such as "binder"
	text   string // and its text
	near   string // names that the engine has instead
}

// planOf binds a text of the gate on the source and gives its plan. Nothing of it runs. It costs about 0.5 ms.
func (in *instance) planOf(ctx context.Context, sql string) (plan, error) {
	c, err := connect(in.db)
	if err != nil {
		return plan{}, fault.Wrap(err, fault.Internal, "database.Approve", "the database cannot be reached")
	}
	defer c.close()
	defer c.watch(ctx)()
	rows, err := c.strings("SELECT json_serialize_plan(?::VARCHAR)::VARCHAR", sql)
	if ctx.Err() != nil {
		return plan{}, fault.Wrap(context.Cause(ctx), fault.Canceled, "database.Approve", "the statement was cancelled")
	}
	var e *engineError
	if errors.As(err, &e) {
		return plan{failed: e.msg}, nil
	}
	if err != nil || len(rows) != 1 || rows[0][0] == nil {
		return plan{}, fault.Wrap(err, fault.Internal, "database.Approve", "the engine gave no plan")
	}
	var answer struct {
		Error bool   `json:"error"`
		Type  string `json:"error_type"`
		Text  string `json:"error_message"`
		Near  string `json:"candidates"`
		Plans any    `json:"plans"`
	}
	d := json.NewDecoder(bytes.NewReader([]byte(*rows[0][0])))
	d.UseNumber()
	if err := d.Decode(&answer); err != nil {
		return plan{}, fault.Wrap(err, fault.Internal, "database.Approve", "the engine's plan cannot be read")
	}
	if answer.Error {
		return plan{failed: answer.Type, text: answer.Text, near: answer.Near}, nil
	}
	return plan{tree: answer.Plans}, nil
}

// fails tells that the text itself is wrong, so that it cannot run either: unlike a plan that the engine made and could
// not write down.
func (p plan) fails() bool {
	return p.mistaken() || slices.Contains([]string{"catalog", "parser", "io", "parameter not resolved"}, strings.ToLower(p.failed))
}

// mistaken tells that whoever wrote the text can mend it.
func (p plan) mistaken() bool {
	return slices.Contains([]string{"binder", "conversion", "invalid input", "out of range", "invalid type", "mismatch type"}, strings.ToLower(p.failed))
}

// scan is one thing that a plan reads.
type scan struct {
	function               string // seq_scan for a table
	catalog, schema, table string // of a table
}

// scans lists what a plan reads, in any order, with repetitions.
func (p plan) scans() []scan {
	var out []scan
	p.each(func(n map[string]any) {
		if kind, _ := n["type"].(string); kind != "LOGICAL_GET" {
			return
		}
		s := scan{}
		s.function, _ = n["name"].(string)
		if data := n["function_data"]; s.function == "seq_scan" {
			s.catalog, _ = member(data, "catalog").(string)
			s.schema, _ = member(data, "schema").(string)
			s.table, _ = member(data, "table").(string)
		}
		out = append(out, s)
	})
	return out
}

// marked gives the types of the expressions that the gate marked (sqlguard.Request.Types), by the text behind the mark.
func (p plan) marked(mark string) map[string][]string {
	out := map[string][]string{}
	p.each(func(n map[string]any) {
		checks, _ := n["case_checks"].([]any)
		if len(checks) != 1 {
			return
		}
		tested := first(member(member(checks[0], "when_expr"), "children"))
		text, _ := member(member(tested, "value"), "value").(string)
		if name, ok := strings.CutPrefix(text, mark); ok {
			id, _ := member(n["return_type"], "id").(string)
			out[name] = append(out[name], id)
		}
	})
	return out
}

func member(v any, key string) any {
	m, _ := v.(map[string]any)
	return m[key]
}

func first(v any) any {
	if list, _ := v.([]any); len(list) > 0 {
		return list[0]
	}
	return nil
}

// each calls do with every object of the plan.
func (p plan) each(do func(map[string]any)) {
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			do(v)
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(p.tree)
}
