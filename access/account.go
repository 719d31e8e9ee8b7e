package access

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"sluice/fault"
)

// User is an account.
type User struct {
	Name        string // lower case
	Role        Role
	Disabled    bool
	HasPassword bool
	CreatedAt   time.Time
	LastLogin   time.Time // zero: never
}

// UserChange is what changes of a user; nil and the empty password leave as it is.
type UserChange struct {
	Role     *Role
	Disabled *bool
	Password string
}

// NewLogin is a login that has just begun or was renewed. Token is "" where it was not made now.
type NewLogin struct {
	ID              string
	User            string
	Token           string
	AuthenticatedAt time.Time
	ExpiresAt       time.Time
}

// Key describes an API key, without its secret.
type Key struct {
	ID        string
	Owner     string
	Name      string
	Role      Role
	Agent     bool
	Databases []string // nil: not narrowed
	Tables    []string
	Models    []string
	ActsFor   string    // the header that names the user for whom the key acts; "" none
	ExpiresAt time.Time // zero: never
	LastUsed  time.Time // to the minute; zero: never
	CreatedAt time.Time
}

// userName is the form of a user's name: an e-mail address is one.
var userName = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]{0,127}$`)

// UserName brings a user's name to its one form, lower case: two users whose names differ in case alone would be taken for one
// another. Names that look like the id of a key are refused, as a grant names either.
func UserName(raw string) (string, error) {
	name := strings.ToLower(raw)
	switch {
	case !userName.MatchString(name):
		return "", fault.New(fault.Invalid, "access.UserName", "a user's name has 1 to 128 letters, digits or . _ - + @, and begins with a letter or digit")
	case KeyLike(name):
		return "", fault.New(fault.Invalid, "access.UserName", "a user's name cannot begin with key_ or login_, or be bootstrap: those are ids of keys")
	}
	return name, nil
}

// KeyLike says whether a text has the form of a key's or a login's id.
func KeyLike(text string) bool {
	return text == "bootstrap" || strings.HasPrefix(text, "key_") || strings.HasPrefix(text, "login_")
}

const (
	minPassword = 8 // as NIST SP 800-63B has it
	maxPassword = 1024
)

// CheckPassword refuses a password that is too short, or so long that its hash would cost time.
func CheckPassword(password string) error {
	if len([]rune(password)) < minPassword || len(password) > maxPassword {
		return fault.New(fault.Invalid, "access.CheckPassword", "a password has %d characters at least and %d bytes at most", minPassword, maxPassword)
	}
	return nil
}

// MayManage says whether p may manage other people's keys, and models: admins only, never an agent. The error has code
// Denied and Kind "auth".
func MayManage(p Principal) error {
	switch {
	case !p.Ceiling().AtLeast(Admin):
		return refuse("this needs an admin's login or key")
	case p.Agent:
		return refuse("this is not open to agent keys")
	}
	return nil
}

// MayAdminister says whether p may manage users, grants and everybody's keys: who could otherwise give itself more than
// it has may not. The error has code Denied and Kind "auth".
func MayAdminister(p Principal) error {
	if err := MayManage(p); err != nil {
		return err
	}
	if p.Narrowed() || !p.ExpiresAt.IsZero() && !p.Login {
		return refuse("this needs a login, or an admin key that is not narrowed and has no end")
	}
	return nil
}

// MayHaveKeys says whether p may see, make and delete keys of its own: a person who logged in, or who may administer. A key
// could otherwise live on in the keys that it made. The error has code Denied and Kind "auth".
func MayHaveKeys(p Principal) error {
	if p.Login && p.Known() && !p.Agent {
		return nil
	}
	if err := MayAdminister(p); err != nil {
		return refuse("keys are managed by a person who logged in, or with an admin key that is not narrowed and has no end")
	}
	return nil
}

// headerName is the form of a header that may name a user.
var headerName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)

// headers that mean something else, or that a proxy on the way writes.
var notHeaders = []string{"authorization", "x-api-key", "cookie", "host", "forwarded", "connection", "content-type", "content-length",
	"transfer-encoding", "accept", "origin", "referer", "user-agent", "x-request-id", "idempotency-key"}

// MayMakeKey says whether p may make the key k, which belongs to owner. The lists need no check: the rights of a key are never
// more than its owner's. Errors are Denied with Kind "auth", or Invalid.
func MayMakeKey(p Principal, owner User, k Key, at Moment) error {
	const op = "access.MayMakeKey"
	if err := MayHaveKeys(p); err != nil {
		return err
	}
	if err := Fresh(p, at); err != nil {
		// A key counts as fresh: made by a login that is not, it would be a way around the password.
		return err
	}
	admin := MayAdminister(p) == nil
	switch {
	case owner.Name == "" || k.Owner != owner.Name || owner.Name != p.Owner && !admin:
		return refuse("only an admin makes keys for others")
	case !k.Role.AtLeast(Restricted):
		return fault.New(fault.Invalid, op, "the key has no role")
	case !p.Ceiling().AtLeast(k.Role) || !owner.Role.AtLeast(k.Role):
		return refuse("a key cannot have a higher role than its owner")
	case strings.TrimSpace(k.Name) == "" || len(k.Name) > 200:
		return fault.New(fault.Invalid, op, "name is required, with 200 bytes at most")
	case k.ActsFor != "" && !admin:
		return refuse("only an admin makes keys that act for others")
	case k.ActsFor != "" && (!headerName.MatchString(k.ActsFor) || slices.Contains(notHeaders, strings.ToLower(k.ActsFor)) || strings.HasPrefix(strings.ToLower(k.ActsFor), "x-forwarded")):
		return fault.New(fault.Invalid, op, "acts_for.header must be the name of a header of its own, such as X-OpenWebUI-User-Email")
	case !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(at.Now):
		return fault.New(fault.Invalid, op, "the key would end before it begins")
	}
	return nil
}
