package access

import (
	"slices"
	"time"

	"sluice/fault"
)

// Folder is a folder of a lake: its connection, and a path that Path accepted.
type Folder struct{ Connection, Path string }

// Moment is when something is asked, and for how long a password counts as given just now. The zero Moment refuses.
type Moment struct {
	Now      time.Time
	FreshFor time.Duration
}

const (
	// keyAge is for how long a key that was read from the store counts as read in this request: longer than any check
	// is away from it, and too short to keep one.
	keyAge = time.Minute
	// skew is how far the clocks of two gateways may be apart.
	skew = 5 * time.Second
)

// Fresh says whether p has shown just now who it is: by a password within FreshFor, or with a key that is no agent's, may
// write, and was read from the store for this request. The error has code Denied and Kind "auth".
func Fresh(p Principal, at Moment) error {
	age := func(t time.Time, most time.Duration) bool {
		d := at.Now.Sub(t)
		return !t.IsZero() && !at.Now.IsZero() && d >= -skew && d <= most
	}
	switch {
	case !p.Known():
		return refuse("this needs a login or a key with a role")
	case p.Login && at.FreshFor > 0 && age(p.AuthenticatedAt, at.FreshFor):
		return nil
	case p.Login:
		return &fault.Error{Code: fault.Denied, Op: "access", Kind: "auth", Msg: "this needs the password again: it was given too long ago",
			Hint: "POST /v1/auth/reauth, or sluice login"}
	case p.Agent || !p.Ceiling().AtLeast(ReadWrite) || !age(p.ReadAt, keyAge):
		return refuse("this needs a login, or a key with the role read_write that is no agent's")
	}
	return nil
}

// MayCopyFrom says whether p may land what it reads from a database in a lake at all; the folder is another question, see
// MayWriteLake. The error has code Denied and Kind "auth".
func MayCopyFrom(p Principal, database string, at Moment) error {
	if err := mayChange(p, "COPY", database); err != nil {
		return err
	}
	return Fresh(p, at)
}

// MayWriteLake says whether p may COPY into a folder, besides what the connection's write_allowlist says. An admin from
// whom nothing is taken away needs no grant. The error has code Denied and Kind "auth", and is the same for a connection that does not exist.
func MayWriteLake(p Principal, f Folder) error {
	if !mayFolder(p, GrantLakeWrite, f) {
		return refuse("there is no lake_write grant that covers '" + f.Path + "' of connection '" + f.Connection + "'")
	}
	return nil
}

// MayCopy is MayCopyFrom and MayWriteLake together.
func MayCopy(p Principal, database string, f Folder, at Moment) error {
	if err := MayCopyFrom(p, database, at); err != nil {
		return err
	}
	return MayWriteLake(p, f)
}

// StillMayCopy is MayCopy without freshness: what is asked again when a COPY that was let in publishes its files.
func StillMayCopy(p Principal, database string, f Folder) error {
	if err := mayChange(p, "COPY", database); err != nil {
		return err
	}
	return MayWriteLake(p, f)
}

// MayAgentCopy says whether a copy that an agent asked for in p's name may run by p's own word: the person logged in just
// now, with all that COPY needs and an agent_copy grant on the folder. The error has code Denied and Kind "auth".
func MayAgentCopy(p Principal, database string, f Folder, at Moment) error {
	if !p.Login {
		return refuse("a copy that an agent asked for needs the person's own login, not a key")
	}
	if err := MayCopy(p, database, f, at); err != nil {
		return err
	}
	if !mayFolder(p, GrantAgentCopy, f) {
		return refuse("there is no agent_copy grant that covers '" + f.Path + "' of connection '" + f.Connection + "'")
	}
	return nil
}

// MayExternal says whether p may create and drop external tables of a database; the folder is another question, see
// MayReadLake. The error has code Denied and Kind "auth".
func MayExternal(p Principal, database string, at Moment) error {
	if err := mayChange(p, "external tables", database); err != nil {
		return err
	}
	return Fresh(p, at)
}

// MayReadLake says whether p may read a folder of a lake. An admin from whom nothing is taken away needs no grant. The
// error has code Denied and Kind "auth", and is the same for a connection that does not exist.
func MayReadLake(p Principal, f Folder) error {
	if !p.Known() || !p.Ceiling().AtLeast(ReadOnly) || !mayFolder(p, GrantLakeRead, f) {
		return refuse("there is no lake_read grant that covers the folder")
	}
	return nil
}

// MaySeeConnection says whether p may know of a connection: who may write or read something of it.
func MaySeeConnection(p Principal, connection string) bool {
	if !p.Known() || connection == "" {
		return false
	}
	of := func(g Grant) bool {
		return g.Connection == connection && (g.Kind == GrantLakeWrite || g.Kind == GrantLakeRead || g.Kind == GrantAgentCopy)
	}
	return p.reach() || folderGrant(p, of)
}

func mayFolder(p Principal, kind Kind, f Folder) bool {
	if !p.Known() || f.Connection == "" {
		return false
	}
	if clean, err := Path(f.Path); err != nil || clean != f.Path {
		return false
	}
	return p.reach() || folderGrant(p, func(g Grant) bool { return g.folder(kind, f) })
}

// folderGrant says whether every holder has a grant of this sort; that of an admin's key, who needs none himself, may be
// the key's own.
func folderGrant(p Principal, sort func(Grant) bool) bool {
	own := slices.ContainsFunc(p.Own, sort)
	return len(p.Holders) > 0 && !slices.ContainsFunc(p.Holders, func(h Holder) bool {
		return !slices.ContainsFunc(h.Grants, sort) && !(h.admin() && own)
	})
}

// mayChange holds what COPY, external DDL and writes have in common: they change what others read,
// so neither a program acting for somebody nor who sees only some tables may do it.
func mayChange(p Principal, what, database string) error {
	switch {
	case !p.Known():
		return refuse(what + " needs a login or a key with a role")
	case p.Agent:
		return refuse(what + " is not open to agent keys: a person has to do it")
	case !p.Ceiling().AtLeast(ReadWrite):
		return refuse(what + " needs the role read_write; this is " + p.Ceiling().String())
	}
	if !MayWhole(p, database) {
		return refuse(what + " needs a database grant, which is more than one on some of its tables")
	}
	return nil
}

// MayWrite says whether p may change rows and tables of a database that is writable. The error has code Denied and Kind
// "auth". It asks for no fresh password, as COPY does: what is changed stays in the database, for those who could read it before.
func MayWrite(p Principal, database string) error {
	return mayChange(p, "writing", database)
}
