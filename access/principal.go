package access

import (
	"slices"
	"time"

	"sluice/fault"
)

// BootstrapOwner is the built-in user, an admin, who owns the bootstrap key. He exists from the first start on, has no
// password until an admin sets one, and can be neither deleted, disabled nor given another role.
const BootstrapOwner = "admin"

// Holder is a user whose rights a principal has, as they are now. The zero Holder has none.
type Holder struct {
	User   string
	Role   Role
	Grants []Grant
}

// admin says whether h reads without grants.
func (h Holder) admin() bool { return h.User != "" && h.Role == Admin }

// Principal is who is calling: a login or a key. The zero Principal refuses everything.
type Principal struct {
	KeyID string // id of the API key, or of the login; "" when nobody is authenticated
	Owner string // the user whose rights these are: the key's owner, or for whom the key acts
	Name  string // the key's own name, for logs and the ledger; of a login the user's
	Role  Role   // the ceiling
	Agent bool   // made for a program, or acting for somebody: never COPY, DML or external DDL

	// Holders are all the users whose rights are needed, each of them for everything. None at all may do nothing.
	Holders []Holder

	// Own are the grants of the key itself. They give nothing that its holders have not: see grant.go.
	Own []Grant

	// The key's own lists. nil does not narrow the holders' rights; an empty list allows nothing.
	Databases []string
	Tables    []string // "database.schema.table" or "database.table"
	Models    []string

	Login           bool      // by password, not by a key
	AuthenticatedAt time.Time // of a login: when the password was given
	ReadAt          time.Time // of a key: when it was read from the store
	ExpiresAt       time.Time // zero: never
}

// Trusted is the principal of who already has everything in hand, such as the person who runs `sluice eval` on files of
// their own: an admin's rights under the ceiling of a role. No request from outside gets one.
func Trusted(id string, role Role) Principal {
	return Principal{KeyID: id, Owner: BootstrapOwner, Name: id, Role: role, Holders: []Holder{{User: BootstrapOwner, Role: Admin}}}
}

// Ceiling is the lowest of the principal's own role and those of its holders: NoRole when nobody stands behind it.
func (p Principal) Ceiling() Role {
	if p.KeyID == "" || p.Owner == "" || len(p.Holders) == 0 || !p.Role.AtLeast(Restricted) {
		return NoRole
	}
	lowest := p.Role
	for _, h := range p.Holders {
		if h.User == "" || !h.Role.AtLeast(Restricted) {
			return NoRole
		}
		lowest = min(lowest, h.Role)
	}
	return lowest
}

// Known says whether somebody with a role is behind the principal.
func (p Principal) Known() bool { return p.Ceiling() != NoRole }

// Narrowed says whether a key has less than its holders: lists, or data grants of its own.
func (p Principal) Narrowed() bool {
	return p.Databases != nil || p.Tables != nil || p.Models != nil || len(p.Own) > 0
}

// reach says whether p has the reach of an admin from whom nothing is taken away, so that no grant is needed.
func (p Principal) reach() bool {
	return p.Ceiling() == Admin && p.Databases == nil && p.Tables == nil && !slices.ContainsFunc(p.Own, Grant.data)
}

func refuse(why string) error {
	return &fault.Error{Code: fault.Denied, Op: "access", Kind: "auth", Msg: why}
}

func allows(list []string, name string) bool { return list == nil || slices.Contains(list, name) }
