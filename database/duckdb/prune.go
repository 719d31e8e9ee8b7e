package duckdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice/sqlguard"
)

// pruneTime bounds what pruning may take. Opening every file is better than waiting longer.
const pruneTime = 2 * time.Second

var errPruneTime = errors.New("database: pruning took too long")

// Prune evaluates terms of a WHERE clause over the partition values of each file. A file stays unless a term is false or
// NULL for it. Where the evaluation fails, the file stays: the statement itself must then say what is wrong. It fails
// after pruneTime.
func (p *parser) Prune(ctx context.Context, partitions []sqlguard.Column, files []sqlguard.ExternalFile, exprs []json.RawMessage) ([]bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pruneTime, errPruneTime)
	defer cancel()
	keep := make([]bool, len(files))
	for i := range keep {
		keep[i] = true
	}
	cond, err := p.condition(ctx, exprs)
	if err != nil {
		return nil, err
	}
	// Files of the same partition are asked about once.
	groups := map[string][]int{}
	var keys []string
	for i, f := range files {
		if len(f.Values) != len(partitions) {
			return nil, fmt.Errorf("database: file %d has %d partition values for %d columns", i, len(f.Values), len(partitions))
		}
		k := tuple(f.Values)
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], i)
	}
	drop, err := p.falseFor(ctx, cond, partitions, keys)
	if err != nil && ctx.Err() == nil {
		// One value that does not evaluate fails them all, so each is asked alone.
		drop = nil
		for _, k := range keys {
			if d, err := p.falseFor(ctx, cond, partitions, []string{k}); err == nil {
				drop = append(drop, d...)
			}
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, k := range drop {
		for _, i := range groups[k] {
			keep[i] = false
		}
	}
	return keep, nil
}

// tuple writes partition values as a row of literals.
func tuple(values []*string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = "NULL"
		if v != nil {
			out[i] = quoteText(*v)
		}
	}
	return strings.Join(out, ", ")
}

// condition writes the terms as one expression, each read from its own tree.
func (p *parser) condition(ctx context.Context, exprs []json.RawMessage) (string, error) {
	var terms []string
	for _, e := range exprs {
		tree := fmt.Sprintf(`{"error":false,"statements":[{"named_param_map":[],"node":{"type":"SELECT_NODE","modifiers":[],"cte_map":{"map":[]},`+
			`"select_list":[%s],"from_table":{"type":"EMPTY","alias":"","sample":null},"where_clause":null,"group_expressions":[],"group_sets":[],`+
			`"aggregate_handling":"STANDARD_HANDLING","having":null,"sample":null,"qualify":null}}]}`, e)
		text, err := p.Deparse(ctx, json.RawMessage(tree))
		if err != nil {
			return "", err
		}
		term, ok := strings.CutPrefix(text, "SELECT ")
		if !ok {
			return "", fmt.Errorf("database: a term was written as %q", text)
		}
		terms = append(terms, "("+term+")")
	}
	return strings.Join(terms, " AND "), nil
}

// falseFor gives those keys for which the condition is not true.
func (p *parser) falseFor(ctx context.Context, cond string, parts []sqlguard.Column, keys []string) ([]string, error) {
	var q strings.Builder
	q.WriteString("SELECT n FROM (SELECT n")
	for i, c := range parts {
		fmt.Fprintf(&q, ", CAST(v%d AS %s) AS %s", i, c.Type, quoteName(c.Name))
	}
	q.WriteString(" FROM (VALUES ")
	for i, k := range keys {
		if i > 0 {
			q.WriteString(", ")
		}
		fmt.Fprintf(&q, "('%d', %s)", i, k)
	}
	q.WriteString(") AS f(n")
	for i := range parts {
		fmt.Fprintf(&q, ", v%d", i)
	}
	q.WriteString(")) AS t WHERE NOT coalesce(CAST((" + cond + ") AS BOOLEAN), false)")
	rows, err := ask(ctx, p.prune, q.String())
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range rows {
		i, err := strconv.Atoi(*r[0])
		if err != nil {
			return nil, err
		}
		out = append(out, keys[i])
	}
	return out, nil
}
