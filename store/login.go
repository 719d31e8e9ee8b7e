package store

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"sluice/access"
	"sluice/fault"
	"sluice/store/db"
)

const (
	loginLife = 12 * time.Hour
	// mostLogins of a user are kept; the oldest ends when there is one more.
	mostLogins = 50
)

// errNoLogin is the one answer to a login that fails, whatever was wrong: it must not tell who has an account.
var errNoLogin = &fault.Error{Code: fault.Unauthenticated, Op: "store.Login", Msg: "the user or the password is wrong"}

// Login checks a password and begins a login. A user who does not exist, is disabled or has no password costs as much and gets
// the same answer as a wrong password: Unauthenticated.
func (a *Accounts) Login(ctx context.Context, name, password string) (access.NewLogin, error) {
	u, err := a.verify(ctx, name, password)
	if err != nil {
		return access.NewLogin{}, err
	}
	token, hash := newSecret("slt_")
	now := a.now().UTC().Truncate(time.Microsecond)
	made := access.NewLogin{ID: "login_" + rand.Text(), User: u.Name, Token: token, AuthenticatedAt: now, ExpiresAt: now.Add(loginLife)}
	err = a.store.change(ctx, func(q *db.Queries) error {
		if err := unchanged(ctx, q, u); err != nil {
			return err
		}
		return errors.Join(
			q.DeleteEndedLogins(ctx, micros(now)),
			q.InsertLogin(ctx, db.InsertLoginParams{
				ID: made.ID, Hash: hash, Owner: u.Name, CreatedAt: micros(now), AuthenticatedAt: micros(now), ExpiresAt: micros(made.ExpiresAt),
			}),
			q.DeleteOldLogins(ctx, db.DeleteOldLoginsParams{Owner: u.Name, Most: mostLogins}),
			q.TouchUser(ctx, db.TouchUserParams{LastLogin: orNull(now), Name: u.Name}),
		)
	})
	if err != nil {
		return access.NewLogin{}, wrap("begin a login", err)
	}
	return made, nil
}

// Reauth checks the password of the user who logged in and makes the login fresh. It gives when.
func (a *Accounts) Reauth(ctx context.Context, who access.Principal, password string) (access.NewLogin, error) {
	if !who.Login {
		return access.NewLogin{}, fault.New(fault.Denied, "store.Reauth", "this is a key, which has no password")
	}
	u, err := a.verify(ctx, who.Owner, password)
	if err != nil {
		return access.NewLogin{}, err
	}
	now := a.now().UTC().Truncate(time.Microsecond)
	err = a.store.change(ctx, func(q *db.Queries) error {
		if err := unchanged(ctx, q, u); err != nil {
			return err
		}
		n, err := q.RefreshLogin(ctx, db.RefreshLoginParams{AuthenticatedAt: micros(now), ID: who.KeyID, Owner: u.Name})
		if err == nil && n == 0 {
			return errNoLogin
		}
		return err
	})
	if err != nil {
		return access.NewLogin{}, wrap("renew a login", err)
	}
	return access.NewLogin{ID: who.KeyID, User: u.Name, AuthenticatedAt: now, ExpiresAt: who.ExpiresAt}, nil
}

// Logout ends a login.
func (a *Accounts) Logout(ctx context.Context, who access.Principal) error {
	if !who.Login {
		return fault.New(fault.Denied, "store.Logout", "this is a key, which no logout ends: delete it")
	}
	_, err := a.store.writer.DeleteLogin(ctx, who.KeyID)
	return wrap("end a login", err)
}

// CheckPassword says with errNoLogin whether a password is not that of a user.
func (a *Accounts) CheckPassword(ctx context.Context, name, password string) error {
	_, err := a.verify(ctx, name, password)
	return err
}

// verify finds a user by name and password. Exactly one hash is computed whatever the answer is; where the password is right
// and was hashed with parameters of before, one more.
func (a *Accounts) verify(ctx context.Context, raw, password string) (account, error) {
	var u account
	if len(password) > maxTyped {
		password = "" // no password is as long, and to hash it would cost time
	}
	name, err := access.UserName(raw)
	if err == nil {
		if u, err = userByName(ctx, a.store.reader, name); err != nil && fault.CodeOf(err) != fault.NotFound {
			return account{}, err
		}
	}
	same, stale, err := a.passwords.matches(ctx, u.hash, password)
	switch {
	case err != nil:
		return account{}, err
	case !same || u.Disabled || !u.Role.AtLeast(access.Restricted):
		return account{}, errNoLogin
	case !stale:
		return u, nil
	}
	fresh, err := a.passwords.hash(ctx, password)
	if err != nil {
		return account{}, err
	}
	if err := a.store.writer.RehashPassword(ctx, db.RehashPasswordParams{Fresh: text(fresh), Name: u.Name, Old: text(u.hash)}); err != nil {
		return account{}, wrap("hash a password anew", err)
	}
	u.hash = fresh
	return u, nil
}

// maxTyped is the longest password that is looked at, in bytes.
const maxTyped = 1024

// unchanged refuses a login of a user whose password was changed, or who was disabled, while the password was checked.
func unchanged(ctx context.Context, q *db.Queries, u account) error {
	now, err := userByName(ctx, q, u.Name)
	if fault.CodeOf(err) == fault.NotFound || err == nil && (now.hash != u.hash || now.Disabled) {
		return errNoLogin
	}
	return err
}
