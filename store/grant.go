package store

import (
	"context"
	"errors"
	"strings"

	"sluice/access"
	"sluice/fault"
	"sluice/store/db"
)

// InsertGrant stores a grant to a user or a key that exists; one that does not is Invalid. A second one that gives the same
// is a Conflict.
func (s *Store) InsertGrant(ctx context.Context, g access.Grant) error {
	if err := g.Check(); err != nil {
		return err
	}
	if g.ID == "" || g.CreatedBy == "" {
		return fault.Bug("store: a grant without id or creator")
	}
	g.Path = folderName(g.Path)
	err := s.change(ctx, func(q *db.Queries) error {
		_, isUser := userByName(ctx, q, g.Principal)
		_, isKey := q.KeyByID(ctx, g.Principal)
		if isUser != nil && isKey != nil {
			if fault.CodeOf(isUser) != fault.NotFound {
				return isUser
			}
			return fault.New(fault.Invalid, "store.InsertGrant", "principal '%s' is neither a user nor the id of a key", g.Principal)
		}
		return q.InsertGrant(ctx, db.InsertGrantParams{
			ID: g.ID, Principal: g.Principal, Kind: string(g.Kind), Database: g.Database, Relation: g.Table, Connection: g.Connection,
			Path: g.Path, Name: g.Name, Access: g.Access, CreatedBy: g.CreatedBy, CreatedAt: micros(g.CreatedAt),
		})
	})
	if conflict(err) {
		return fault.New(fault.Conflict, "store.InsertGrant", "'%s' has this grant already", g.Principal)
	}
	return wrap("insert a grant", err)
}

// folderName brings a folder's name to one form: a, a/ and a/* mean the same.
func folderName(path string) string {
	switch path {
	case "", "/", "/*":
		return strings.TrimSuffix(path, "*")
	}
	return strings.TrimRight(strings.TrimSuffix(path, "/*"), "/")
}

// Grants lists all grants, by principal.
func (s *Store) Grants(ctx context.Context) ([]access.Grant, error) {
	rows, err := s.reader.Grants(ctx)
	if err != nil {
		return nil, wrap("list grants", err)
	}
	return each(rows, grant)
}

func grantsOf(ctx context.Context, q *db.Queries, principal string) ([]access.Grant, error) {
	rows, err := q.GrantsOf(ctx, principal)
	if err != nil {
		return nil, wrap("list the grants of a principal", err)
	}
	return each(rows, grant)
}

// DeleteGrant takes a grant away. No such grant is NotFound.
func (s *Store) DeleteGrant(ctx context.Context, id string) error {
	n, err := s.writer.DeleteGrant(ctx, id)
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "store.DeleteGrant", "no such grant")
	}
	return wrap("delete a grant", err)
}

// grant reads a row. One that no check would let in, written by somebody else, is an error and not a right.
func grant(row db.Grant) (access.Grant, error) {
	g := access.Grant{
		ID: row.ID, Principal: row.Principal, Kind: access.Kind(row.Kind), Database: row.Database, Table: row.Relation,
		Connection: row.Connection, Path: row.Path, Name: row.Name, Access: row.Access, CreatedBy: row.CreatedBy, CreatedAt: moment(row.CreatedAt),
	}
	if err := g.Check(); err != nil {
		return access.Grant{}, errors.New("store: grant " + row.ID + " is damaged")
	}
	return g, nil
}
