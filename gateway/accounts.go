package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/fault"
)

// Accounts knows who somebody is, and keeps users, keys and grants; *store.Accounts is one. Who may change what is checked
// here, before it is asked.
type Accounts interface {
	// Principal finds who a bearer is, an API key or the token of a login. header gives the values of one of the request's
	// headers. Not known, ended or disabled is Unauthenticated.
	Principal(ctx context.Context, bearer string, header func(name string) []string) (access.Principal, error)

	// Login checks a password and begins a login. Whatever is wrong gives one answer, Unauthenticated, and costs the same.
	Login(ctx context.Context, user, password string) (access.NewLogin, error)
	// Reauth makes the login of who fresh.
	Reauth(ctx context.Context, who access.Principal, password string) (access.NewLogin, error)
	// Logout ends the login of who.
	Logout(ctx context.Context, who access.Principal) error
	// CheckPassword answers a wrong password as Login does.
	CheckPassword(ctx context.Context, user, password string) error

	Users(ctx context.Context) ([]access.User, error)
	User(ctx context.Context, name string) (access.User, error) // NotFound
	CreateUser(ctx context.Context, u access.User, password string) (access.User, error)
	// ChangeUser ends all logins of a user who gets a new password or is disabled.
	ChangeUser(ctx context.Context, name string, c access.UserChange) (access.User, error)
	// DeleteUser removes a user's keys, logins and grants with him.
	DeleteUser(ctx context.Context, name string) error

	Keys(ctx context.Context) ([]access.Key, error)
	// CreateKey makes a key and gives its secret, which is shown this once.
	CreateKey(ctx context.Context, k access.Key) (made access.Key, secret string, err error)
	// ChangeKey changes a key by what change does to it. An error of change is given back, and nothing is changed.
	ChangeKey(ctx context.Context, id string, change func(*access.Key) error) (access.Key, error)
	DeleteKey(ctx context.Context, id string) error // NotFound

	Grants(ctx context.Context) ([]access.Grant, error)
	CreateGrant(ctx context.Context, g access.Grant) (access.Grant, error)
	DeleteGrant(ctx context.Context, id string) error // NotFound
}

// UserInfo is a user on the wire.
type UserInfo struct {
	ID          string     `json:"id"` // the name
	Name        string     `json:"name"`
	Role        string     `json:"role"`
	Disabled    bool       `json:"disabled"`
	HasPassword bool       `json:"has_password"`
	CreatedAt   time.Time  `json:"created_at"`
	LastLogin   *time.Time `json:"last_login"`
}

func wireUser(u access.User) UserInfo {
	return UserInfo{ID: u.Name, Name: u.Name, Role: u.Role.String(), Disabled: u.Disabled, HasPassword: u.HasPassword, CreatedAt: u.CreatedAt, LastLogin: orNil(u.LastLogin)}
}

// orNil is nil for a time that never was.
func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (s *server) listUsers(c *gin.Context, _ int) ([]UserInfo, error) {
	users, err := s.cfg.Accounts.Users(c.Request.Context())
	var all []UserInfo
	for _, u := range users {
		all = append(all, wireUser(u))
	}
	return all, err
}

// userOf finds the user that a path names: any for an admin, else only oneself. All others do not exist.
func (s *server) userOf(c *gin.Context) (access.User, error) {
	missing := fault.New(fault.NotFound, "gateway.userOf", "user '%s' not found", printable(c.Param("id"), 128))
	who, name := principal(c), strings.ToLower(c.Param("id"))
	if name != who.Owner && access.MayAdminister(who) != nil {
		return access.User{}, missing
	}
	u, err := s.cfg.Accounts.User(c.Request.Context(), name)
	if fault.CodeOf(err) == fault.NotFound {
		err = missing
	}
	return u, err
}

func (s *server) getUser(c *gin.Context) {
	u, err := s.userOf(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, wireUser(u))
}

func (s *server) createUser(c *gin.Context) {
	var req struct {
		Name     string `json:"name"`
		Role     string `json:"role"`
		Password string `json:"password"`
		Disabled bool   `json:"disabled"`
	}
	u := access.User{}
	err := s.freshly(c)
	if err == nil {
		err = decodeStrict(c, &req)
	}
	if err == nil {
		u.Disabled = req.Disabled
		u.Name, err = access.UserName(req.Name)
	}
	if err == nil {
		u.Role, err = access.ParseRole(req.Role)
	}
	if err == nil && req.Password != "" {
		err = access.CheckPassword(req.Password)
	}
	if err == nil {
		details := map[string]any{"user": u.Name, "role": u.Role.String(), "password": req.Password != "", "disabled": u.Disabled}
		err = s.audited(c, "user.create", details, func() (err error) {
			u, err = s.cfg.Accounts.CreateUser(c.Request.Context(), u, req.Password)
			return err
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, wireUser(u))
}

// changeUser is PATCH /v1/users/{id}: an admin changes role, password and whether somebody is disabled; anybody their own
// password, with the present one.
func (s *server) changeUser(c *gin.Context) {
	var req struct {
		Role     *string `json:"role"`
		Disabled *bool   `json:"disabled"`
		Password *string `json:"password"`
		Current  string  `json:"current_password"`
	}
	u, err := s.userOf(c)
	if err == nil {
		err = decodeStrict(c, &req)
	}
	if err == nil {
		err = s.mayChangeUser(c, u, req.Role != nil || req.Disabled != nil, req.Password != nil, req.Current)
	}
	change, details := access.UserChange{Disabled: req.Disabled}, map[string]any{"user": u.Name}
	if err == nil && req.Role != nil {
		var role access.Role
		role, err = access.ParseRole(*req.Role)
		change.Role, details["role"] = &role, role.String()
	}
	if err == nil && req.Password != nil {
		change.Password, details["password"] = *req.Password, true
		err = access.CheckPassword(*req.Password)
	}
	if req.Disabled != nil {
		details["disabled"] = *req.Disabled
	}
	if err == nil && len(details) == 1 {
		err = fault.New(fault.Invalid, "gateway.changeUser", "there is nothing to change: give role, disabled or password")
	}
	if err == nil {
		err = s.audited(c, "user.change", details, func() (err error) {
			u, err = s.cfg.Accounts.ChangeUser(c.Request.Context(), u.Name, change)
			return err
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, wireUser(u))
}

// mayChangeUser checks who changes a user. One's own password needs the present one, an admin's too when he has one: a login
// left open must not be enough to take an account over.
func (s *server) mayChangeUser(c *gin.Context, u access.User, account, password bool, current string) error {
	who := principal(c)
	if account {
		if err := access.MayAdminister(who); err != nil {
			return err
		}
	}
	if password && who.Login && u.Name == who.Owner {
		if current == "" {
			return fault.New(fault.Invalid, "gateway.changeUser", "one's own password changes with the present one, current_password")
		}
		return s.attempt(c, u.Name, func() error {
			err := s.cfg.Accounts.CheckPassword(c.Request.Context(), u.Name, current)
			if fault.CodeOf(err) == fault.Unauthenticated { // the login is valid: a client must not take this for its end
				err = fault.Wrap(err, fault.Denied, "gateway.changeUser", "current_password is wrong")
			}
			return err
		})
	}
	if err := access.MayAdminister(who); err != nil {
		return err
	}
	return s.freshly(c)
}

func (s *server) deleteUser(c *gin.Context) {
	u, err := s.userOf(c)
	if err == nil {
		err = s.freshly(c)
	}
	if err == nil {
		err = s.audited(c, "user.delete", map[string]any{"user": u.Name}, func() error {
			if s.cfg.Collections != nil { // who gets the name later must not get the collections with it
				if err := s.cfg.Collections.Disown(c.Request.Context(), u.Name); err != nil {
					return err
				}
			}
			return s.cfg.Accounts.DeleteUser(c.Request.Context(), u.Name)
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"deleted": u.Name})
}

// one finds an entry of a list by id.
func one[T any](all []T, id func(T) string, wanted, what string) (T, error) {
	i := slices.IndexFunc(all, func(v T) bool { return id(v) == wanted })
	if i < 0 {
		var none T
		return none, fault.New(fault.NotFound, "gateway.one", "%s '%s' not found", what, printable(wanted, 100))
	}
	return all[i], nil
}
