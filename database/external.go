package database

import (
	"context"
	"slices"
	"strings"

	"sluice/sqlguard"
)

// Externals gives the external tables of a database. lakecopy implements it. It is asked for every statement, so it looks
// at no file: Table.External.Files does, for those tables that a statement names.
type Externals interface {
	Tables(ctx context.Context, database string) ([]sqlguard.Table, error)
}

// withExternals adds the external tables to the engine's own.
func (s *Source) withExternals(ctx context.Context, own *sqlguard.Catalog) (*sqlguard.Catalog, error) {
	if s.ext == nil || len(s.cfg.LakeRoots) == 0 {
		return own, nil
	}
	external, err := s.ext.Tables(ctx, s.cfg.Name)
	if err != nil {
		return nil, err
	}
	if len(external) == 0 {
		return own, nil // the same one each time, which seen.go counts on
	}
	return merge(own, external), nil
}

// merge adds external tables. One with the name of a table of the file is left out: the file was there first, and one
// name must not stand for two relations.
func merge(own *sqlguard.Catalog, external []sqlguard.Table) *sqlguard.Catalog {
	out := *own
	out.Tables = slices.Clone(own.Tables)
	for _, e := range external {
		if e.Schema == "" {
			e.Schema = own.DefaultSchema
		}
		taken := slices.ContainsFunc(own.Tables, func(t sqlguard.Table) bool {
			return strings.EqualFold(t.Name, e.Name) && strings.EqualFold(t.Schema, e.Schema)
		})
		if e.External != nil && !taken {
			out.Tables = append(out.Tables, e)
		}
	}
	return &out
}
