package store

import (
	"context"
	"database/sql"
	"errors"

	"sluice/access"
	"sluice/fault"
	"sluice/store/db"
)

// account is a user with the hash of his password, "" for none.
type account struct {
	access.User
	hash string
}

func user(row db.User) (account, error) {
	return account{hash: row.Password.String, User: access.User{
		Name: row.Name, Role: role(row.Role), Disabled: row.Disabled != 0, HasPassword: row.Password.Valid,
		CreatedAt: moment(row.CreatedAt), LastLogin: orZero(row.LastLogin),
	}}, nil
}

func userByName(ctx context.Context, q *db.Queries, name string) (account, error) {
	row, err := q.UserByName(ctx, name)
	return found(row, err, user, "no such user")
}

// User finds a user by name. No such user is NotFound.
func (s *Store) User(ctx context.Context, name string) (access.User, error) {
	u, err := userByName(ctx, s.reader, name)
	return u.User, err
}

// Users lists all users by name.
func (s *Store) Users(ctx context.Context) ([]access.User, error) {
	rows, err := s.reader.Users(ctx)
	if err != nil {
		return nil, wrap("list users", err)
	}
	return each(rows, func(row db.User) (access.User, error) {
		u, err := user(row)
		return u.User, err
	})
}

// insertUser stores a user. A second one of the name is a Conflict.
func (s *Store) insertUser(ctx context.Context, u access.User, hash string) error {
	if name, err := access.UserName(u.Name); err != nil || name != u.Name || !u.Role.AtLeast(access.Restricted) {
		return fault.Bug("store: a user without name or role")
	}
	err := s.writer.InsertUser(ctx, db.InsertUserParams{
		Name: u.Name, Role: u.Role.String(), Password: text(hash), Disabled: bit(u.Disabled), CreatedAt: micros(u.CreatedAt),
	})
	if conflict(err) {
		return fault.New(fault.Conflict, "store.insertUser", "there is a user '%s' already", u.Name)
	}
	return wrap("insert a user", err)
}

// changeUser changes a user; hash is that of a new password, "" for none. A new password, and being disabled, end all his
// logins.
func (s *Store) changeUser(ctx context.Context, name string, c access.UserChange, hash string) (access.User, error) {
	var after access.User
	err := s.change(ctx, func(q *db.Queries) error {
		u, err := userByName(ctx, q, name)
		if err != nil {
			return err
		}
		if c.Role != nil {
			u.Role = *c.Role
		}
		if c.Disabled != nil {
			u.Disabled = *c.Disabled
		}
		if hash != "" {
			u.hash = hash
		}
		if name == access.BootstrapOwner && (u.Disabled || u.Role != access.Admin) {
			return fault.New(fault.Conflict, "store.changeUser", "the built-in user %s stays an admin and cannot be disabled, so that there is always one", name)
		}
		u.HasPassword = u.hash != ""
		_, err = q.UpdateUser(ctx, db.UpdateUserParams{
			Role: u.Role.String(), Password: text(u.hash), Disabled: bit(u.Disabled), Name: name,
		})
		if err == nil && (hash != "" || u.Disabled) {
			err = q.DeleteLoginsOf(ctx, name)
		}
		after = u.User
		return err
	})
	return after, wrap("change a user", err)
}

// DeleteUser removes a user with his keys, logins, grants, questions and what he confirmed for himself: the next one of that
// name must not find them. No such user is NotFound.
func (s *Store) DeleteUser(ctx context.Context, name string) error {
	if name == access.BootstrapOwner {
		return fault.New(fault.Conflict, "store.DeleteUser", "the built-in user %s cannot be deleted", name)
	}
	return wrap("delete a user", s.change(ctx, func(q *db.Queries) error {
		n, err := q.DeleteUser(ctx, name)
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "store.DeleteUser", "no such user")
		}
		return errors.Join(err, q.DeleteGrantsOfKeys(ctx, name), q.DeleteKeysOf(ctx, name), q.DeleteLoginsOf(ctx, name), q.DeleteGrantsOf(ctx, name),
			q.DeleteAsksOf(ctx, name), q.DeleteVerifiedOf(ctx, name))
	}))
}

// text keeps the empty text as NULL.
func text(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
