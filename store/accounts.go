package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"sluice/access"
	"sluice/fault"
	"sluice/store/db"
)

// Accounts answers who somebody is and what they may, and changes users, keys and grants. It keeps nothing: each answer is read
// from the store, so that a change counts from the next request on. Who may change what is the caller's to check.
type Accounts struct {
	store     *Store
	passwords *passwords
	now       func() time.Time
}

// NewAccounts makes the accounts of a store; now nil is time.Now.
func NewAccounts(s *Store, now func() time.Time) *Accounts {
	if now == nil {
		now = time.Now
	}
	return &Accounts{store: s, passwords: newPasswords(), now: now}
}

// touchEvery is how often the use of a key is written down.
const touchEvery = time.Minute

func notKnown(what string) error {
	return fault.New(fault.Unauthenticated, "store.Principal", "%s", what)
}

// Principal finds who a bearer is: an API key or the token of a login. header gives the values of one of the request's headers,
// for keys that act for others. What is not known, has ended or belongs to a user who is disabled is Unauthenticated; a
// key that does not say for whom it acts is Denied.
func (a *Accounts) Principal(ctx context.Context, bearer string, header func(name string) []string) (access.Principal, error) {
	// The lookup is by hash: nothing is compared byte by byte, so timing tells nothing.
	hash := HashSecret(bearer)
	var who access.Principal
	var touch bool
	now := a.now()
	err := a.store.look(ctx, func(q *db.Queries) error {
		k, err := keyByHash(ctx, q, hash)
		if fault.CodeOf(err) == fault.NotFound {
			row, err := q.LoginByHash(ctx, hash)
			if errors.Is(err, sql.ErrNoRows) {
				return notKnown("this API key or login is not known here")
			}
			if err != nil {
				return wrap("find a login", err)
			}
			who, err = ofLogin(ctx, q, row, now)
			return err
		}
		if err != nil {
			return err
		}
		actsFor := ""
		if k.ActsFor != "" {
			if actsFor, err = named(k.ActsFor, header); err != nil {
				return err
			}
		}
		touch = now.Sub(k.LastUsed) >= touchEvery
		who, err = ofKey(ctx, q, k, actsFor, now)
		return err
	})
	if err != nil {
		return access.Principal{}, err
	}
	if touch {
		// A use that cannot be written down, on a full disk say, is no reason to refuse it.
		_ = a.store.writer.TouchKey(ctx, db.TouchKeyParams{Now: orNull(now), ID: who.KeyID, Before: orNull(now.Add(-touchEvery))})
	}
	return who, nil
}

// named reads for whom a key acts.
func named(header string, values func(string) []string) (string, error) {
	var all []string
	if values != nil {
		all = values(header)
	}
	if len(all) != 1 || all[0] == "" {
		return "", fault.New(fault.Denied, "store.Principal", "this key acts for the user that the header %s names: it must be there once", header)
	}
	name, err := access.UserName(all[0])
	if err != nil {
		return "", noSuchUser(header)
	}
	return name, nil
}

func noSuchUser(header string) error {
	return fault.New(fault.Denied, "store.Principal", "this key acts for the user that the header %s names, and there is none of that name", header)
}

func ofLogin(ctx context.Context, q *db.Queries, row db.Login, now time.Time) (access.Principal, error) {
	if !now.Before(moment(row.ExpiresAt)) {
		return access.Principal{}, notKnown("this login has ended: log in again")
	}
	h, err := holder(ctx, q, row.Owner)
	if err != nil {
		return access.Principal{}, err
	}
	return access.Principal{
		KeyID: row.ID, Owner: h.User, Name: h.User, Role: h.Role, Holders: []access.Holder{h}, Login: true,
		AuthenticatedAt: moment(row.AuthenticatedAt), ExpiresAt: moment(row.ExpiresAt),
	}, nil
}

// ofKey is the principal that a key makes; actsFor is the user for whom it acts, "" for its owner.
func ofKey(ctx context.Context, q *db.Queries, k Key, actsFor string, now time.Time) (access.Principal, error) {
	if !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) {
		return access.Principal{}, notKnown("this API key has expired")
	}
	owner, err := holder(ctx, q, k.Owner)
	if err != nil {
		return access.Principal{}, err
	}
	own, err := grantsOf(ctx, q, k.ID)
	if err != nil {
		return access.Principal{}, err
	}
	who := access.Principal{
		KeyID: k.ID, Owner: k.Owner, Name: k.Name, Role: k.Role, Agent: k.Agent, Holders: []access.Holder{owner}, Own: own,
		Databases: k.Databases, Tables: k.Tables, Models: k.Models, ReadAt: now, ExpiresAt: k.ExpiresAt,
	}
	if k.ActsFor == "" {
		who.Role = who.Ceiling()
		return who, nil
	}
	person, err := holder(ctx, q, actsFor)
	if fault.CodeOf(err) == fault.Unauthenticated {
		return access.Principal{}, noSuchUser(k.ActsFor)
	}
	if err != nil {
		return access.Principal{}, err
	}
	// A program speaks for the person here, who has shown no password: it reads, and changes nothing.
	who.Owner, who.Agent, who.Holders = person.User, true, []access.Holder{person, owner}
	who.Role = who.Ceiling()
	return who, nil
}

// holder reads a user's rights. One who is not there or disabled is Unauthenticated.
func holder(ctx context.Context, q *db.Queries, name string) (access.Holder, error) {
	u, err := userByName(ctx, q, name)
	if fault.CodeOf(err) == fault.NotFound || err == nil && u.Disabled {
		return access.Holder{}, notKnown("this API key or login is not known here")
	}
	if err != nil {
		return access.Holder{}, err
	}
	grants, err := grantsOf(ctx, q, u.Name)
	return access.Holder{User: u.Name, Role: u.Role, Grants: grants}, err
}

// OfUser gives what a user may do, by his grants alone. One who is not there, or is disabled, is NotFound.
func (a *Accounts) OfUser(ctx context.Context, name string) (access.Principal, error) {
	var h access.Holder
	err := a.store.look(ctx, func(q *db.Queries) (err error) {
		h, err = holder(ctx, q, name)
		return err
	})
	if fault.CodeOf(err) == fault.Unauthenticated {
		return access.Principal{}, fault.New(fault.NotFound, "store.OfUser", "no such user")
	}
	return access.Principal{KeyID: "user", Owner: h.User, Name: h.User, Role: h.Role, Holders: []access.Holder{h}}, err
}

// Again gives what a principal that was found before may do now. One whose key, login or user is gone is Unauthenticated.
func (a *Accounts) Again(ctx context.Context, who access.Principal) (access.Principal, error) {
	var again access.Principal
	err := a.store.look(ctx, func(q *db.Queries) error {
		if who.Login {
			row, err := q.LoginByID(ctx, who.KeyID)
			if errors.Is(err, sql.ErrNoRows) {
				return notKnown("this login has ended")
			}
			if err != nil {
				return wrap("find a login", err)
			}
			again, err = ofLogin(ctx, q, row, a.now())
			return err
		}
		row, err := q.KeyByID(ctx, who.KeyID)
		if errors.Is(err, sql.ErrNoRows) {
			return notKnown("this API key is not known any more")
		}
		if err != nil {
			return wrap("find a key", err)
		}
		k, err := key(row)
		if err != nil {
			return err
		}
		actsFor := ""
		if k.ActsFor != "" {
			actsFor = who.Owner
		}
		again, err = ofKey(ctx, q, k, actsFor, a.now())
		return err
	})
	return again, err
}

// Users lists all users by name.
func (a *Accounts) Users(ctx context.Context) ([]access.User, error) { return a.store.Users(ctx) }

// User finds a user. No such user is NotFound.
func (a *Accounts) User(ctx context.Context, name string) (access.User, error) {
	return a.store.User(ctx, name)
}

// CreateUser makes a user, with a password or, where it is "", without.
func (a *Accounts) CreateUser(ctx context.Context, u access.User, password string) (access.User, error) {
	hash, err := a.newHash(ctx, password)
	if err != nil {
		return access.User{}, err
	}
	u.CreatedAt, u.HasPassword = a.now().UTC().Truncate(time.Microsecond), hash != ""
	return u, a.store.insertUser(ctx, u, hash)
}

// ChangeUser changes a user. A new password, and being disabled, end all his logins.
func (a *Accounts) ChangeUser(ctx context.Context, name string, c access.UserChange) (access.User, error) {
	if c.Role != nil && !c.Role.AtLeast(access.Restricted) {
		return access.User{}, fault.Bug("store: a user without role")
	}
	hash, err := a.newHash(ctx, c.Password)
	if err != nil {
		return access.User{}, err
	}
	return a.store.changeUser(ctx, name, c, hash)
}

func (a *Accounts) newHash(ctx context.Context, password string) (string, error) {
	if password == "" {
		return "", nil
	}
	if err := access.CheckPassword(password); err != nil {
		return "", err
	}
	return a.passwords.hash(ctx, password)
}

// DeleteUser removes a user with his keys, logins and grants. No such user is NotFound.
func (a *Accounts) DeleteUser(ctx context.Context, name string) error {
	return a.store.DeleteUser(ctx, name)
}

// Keys lists all keys, oldest first.
func (a *Accounts) Keys(ctx context.Context) ([]access.Key, error) {
	all, err := a.store.Keys(ctx)
	out := make([]access.Key, 0, len(all))
	for _, k := range all {
		out = append(out, k.Key)
	}
	return out, err
}

// CreateKey makes a key and gives it with its secret, which is shown this once.
func (a *Accounts) CreateKey(ctx context.Context, k access.Key) (access.Key, string, error) {
	secret, hash := NewSecret()
	k.CreatedAt = a.now().UTC().Truncate(time.Microsecond)
	return k, secret, a.store.change(ctx, func(q *db.Queries) error {
		if _, err := userByName(ctx, q, k.Owner); err != nil { // deleted meanwhile: the key would outlive him
			return err
		}
		return insertKey(ctx, q, Key{Key: k, Hash: hash})
	})
}

// ChangeKey changes a key by what change does to it; only name, role, lists and end can change. An error of change is given
// back. No such key is NotFound.
func (a *Accounts) ChangeKey(ctx context.Context, id string, change func(*access.Key) error) (access.Key, error) {
	var after access.Key
	err := a.store.change(ctx, func(q *db.Queries) error {
		row, err := q.KeyByID(ctx, id)
		k, err := found(row, err, key, "no such key")
		if err != nil {
			return err
		}
		if err := change(&k.Key); err != nil {
			return err
		}
		if !k.Role.AtLeast(access.Restricted) {
			return fault.Bug("store: a key without role")
		}
		after = k.Key
		_, err = q.UpdateKey(ctx, db.UpdateKeyParams{Name: k.Name, Role: k.Role.String(), Databases: packed(k.Databases), Tables: packed(k.Tables),
			Models: packed(k.Models), ExpiresAt: orNull(k.ExpiresAt), ID: id})
		return err
	})
	return after, err
}

// DeleteKey removes a key and what was granted to it. No such key is NotFound.
func (a *Accounts) DeleteKey(ctx context.Context, id string) error {
	gone, err := a.store.DeleteKey(ctx, id)
	if err == nil && !gone {
		return fault.New(fault.NotFound, "store.DeleteKey", "no such key")
	}
	return err
}

// Grants lists all grants, by principal.
func (a *Accounts) Grants(ctx context.Context) ([]access.Grant, error) { return a.store.Grants(ctx) }

// CreateGrant gives a right to a user or a key that exists.
func (a *Accounts) CreateGrant(ctx context.Context, g access.Grant) (access.Grant, error) {
	g.CreatedAt, g.Path = a.now().UTC().Truncate(time.Microsecond), folderName(g.Path)
	return g, a.store.InsertGrant(ctx, g)
}

// DeleteGrant takes a right away. No such grant is NotFound.
func (a *Accounts) DeleteGrant(ctx context.Context, id string) error {
	return a.store.DeleteGrant(ctx, id)
}
