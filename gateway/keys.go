package gateway

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/fault"
)

// NewKey is the request of POST /v1/keys. A list that is absent does not narrow; an empty one allows nothing.
type NewKey struct {
	Name      string   `json:"name"`
	Role      string   `json:"role"`
	Owner     string   `json:"owner,omitempty"` // absent: the caller
	Agent     bool     `json:"agent,omitempty"`
	Databases []string `json:"databases,omitempty"`
	Tables    []string `json:"tables,omitempty"`
	Models    []string `json:"models,omitempty"`
	ActsFor   *ActsFor `json:"acts_for,omitempty"`
	ExpiresIn *Life    `json:"expires_in,omitempty"` // absent: no end
}

// ActsFor says in which header a request names the user for whom a key acts.
type ActsFor struct {
	Header string `json:"header"`
}

// KeyInfo describes a key without its secret. A null list does not narrow.
type KeyInfo struct {
	ID        string     `json:"id"`
	Owner     string     `json:"owner"`
	Name      string     `json:"name"`
	Role      string     `json:"role"`
	Agent     bool       `json:"agent"`
	Databases []string   `json:"databases"`
	Tables    []string   `json:"tables"`
	Models    []string   `json:"models"`
	ActsFor   *ActsFor   `json:"acts_for"`
	ExpiresAt *time.Time `json:"expires_at"`
	LastUsed  *time.Time `json:"last_used"` // to the minute
	CreatedAt time.Time  `json:"created_at"`
}

func wireKey(k access.Key) KeyInfo {
	info := KeyInfo{ID: k.ID, Owner: k.Owner, Name: k.Name, Role: k.Role.String(), Agent: k.Agent, Databases: k.Databases, Tables: k.Tables, Models: k.Models,
		ExpiresAt: orNil(k.ExpiresAt), LastUsed: orNil(k.LastUsed), CreatedAt: k.CreatedAt}
	if k.ActsFor != "" {
		info.ActsFor = &ActsFor{Header: k.ActsFor}
	}
	return info
}

// visibleKeys are the keys that the caller may know of: an admin all, others their own.
func (s *server) visibleKeys(c *gin.Context) ([]KeyInfo, error) {
	keys, err := s.cfg.Accounts.Keys(c.Request.Context())
	if err != nil {
		return nil, err
	}
	who := principal(c)
	all := access.MayAdminister(who) == nil
	var seen []KeyInfo
	for _, k := range keys {
		if all || k.Owner == who.Owner {
			seen = append(seen, wireKey(k))
		}
	}
	return seen, nil
}

func (s *server) listKeys(c *gin.Context, _ int) ([]KeyInfo, error) { return s.visibleKeys(c) }

// keyOf finds the key that a path names among those that the caller may know of.
func (s *server) keyOf(c *gin.Context) (KeyInfo, error) {
	keys, err := s.visibleKeys(c)
	if err != nil {
		return KeyInfo{}, err
	}
	return one(keys, func(k KeyInfo) string { return k.ID }, c.Param("id"), "key")
}

func (s *server) getKey(c *gin.Context) {
	key, err := s.keyOf(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, key)
}

func (s *server) createKey(c *gin.Context) {
	var req NewKey
	err := decodeStrict(c, &req)
	var k access.Key
	if err == nil {
		k, err = s.newKey(c, req)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	var secret string
	err = s.audited(c, "key.create", detailsOfKey(k), func() (err error) {
		k, secret, err = s.cfg.Accounts.CreateKey(c.Request.Context(), k)
		return err
	})
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	reply(c, gin.H{"id": k.ID, "key": secret, "owner": k.Owner, "expires_at": orNil(k.ExpiresAt)})
}

// newKey reads a request for a key and checks that the caller may make it.
func (s *server) newKey(c *gin.Context, req NewKey) (access.Key, error) {
	who, owner := principal(c), principal(c).Owner
	if req.Owner != "" {
		owner = strings.ToLower(req.Owner)
	}
	if owner != who.Owner {
		if err := access.MayAdminister(who); err != nil {
			return access.Key{}, fault.New(fault.Denied, "gateway.createKey", "only an admin makes keys for others") // whether they exist or not
		}
	}
	user, err := s.cfg.Accounts.User(c.Request.Context(), owner)
	if fault.CodeOf(err) == fault.NotFound {
		return access.Key{}, fault.New(fault.Invalid, "gateway.createKey", "owner '%s' is no user", printable(owner, 128))
	}
	if err != nil {
		return access.Key{}, err
	}
	role, err := access.ParseRole(req.Role)
	if err != nil {
		return access.Key{}, err
	}
	k := access.Key{ID: "key_" + rand.Text(), Owner: owner, Name: req.Name, Role: role, Agent: req.Agent, Databases: req.Databases, Tables: req.Tables, Models: req.Models}
	if req.ActsFor != nil {
		if req.ActsFor.Header == "" {
			return access.Key{}, fault.New(fault.Invalid, "gateway.createKey", "acts_for needs a header")
		}
		k.ActsFor = req.ActsFor.Header
	}
	if req.ExpiresIn != nil {
		k.ExpiresAt = s.now().UTC().Add(time.Duration(*req.ExpiresIn)).Truncate(time.Microsecond)
	}
	if err := checkLists(k); err != nil {
		return access.Key{}, err
	}
	return k, access.MayMakeKey(who, user, k, s.moment())
}

// checkLists refuses entries that no name can match: the key would be narrower than its maker thinks.
func checkLists(k access.Key) error {
	const op = "gateway.checkLists"
	for name, list := range map[string][]string{"databases": k.Databases, "tables": k.Tables, "models": k.Models} {
		if slices.Contains(list, "") {
			return fault.New(fault.Invalid, op, "%s holds an empty name", name)
		}
	}
	for _, table := range k.Tables {
		if parts := strings.Split(table, "."); len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
			return fault.New(fault.Invalid, op, "tables: '%s' is neither database.table nor database.schema.table", printable(table, 200))
		}
	}
	return nil
}

// changeKey is PATCH /v1/keys/{id}: name, lists, end, and a lower role.
func (s *server) changeKey(c *gin.Context) {
	var req struct {
		Name      *string         `json:"name"`
		Role      *string         `json:"role"`
		Databases json.RawMessage `json:"databases"` // null: not narrowed
		Tables    json.RawMessage `json:"tables"`
		Models    json.RawMessage `json:"models"`
		ExpiresIn json.RawMessage `json:"expires_in"` // null: no end
	}
	key, err := s.keyOf(c)
	if err == nil {
		err = decodeStrict(c, &req)
	}
	var owner access.User
	if err == nil {
		owner, err = s.cfg.Accounts.User(c.Request.Context(), key.Owner)
	}
	change := func(k *access.Key) error {
		before := k.Role
		if req.Name != nil {
			k.Name = *req.Name
		}
		if req.Role != nil {
			role, err := access.ParseRole(*req.Role)
			if err != nil {
				return err
			}
			if role > before {
				return fault.New(fault.Denied, "gateway.changeKey", "a key's role can be lowered, not raised: make another key")
			}
			k.Role = role
		}
		for _, list := range []struct {
			name string
			raw  json.RawMessage
			into *[]string
		}{{"databases", req.Databases, &k.Databases}, {"tables", req.Tables, &k.Tables}, {"models", req.Models, &k.Models}} {
			if len(list.raw) > 0 {
				*list.into = nil
				if err := json.Unmarshal(list.raw, list.into); err != nil {
					return fault.New(fault.Invalid, "gateway.changeKey", "%s must be a list of names, or null", list.name)
				}
			}
		}
		if len(req.ExpiresIn) > 0 {
			k.ExpiresAt = time.Time{}
			if present(req.ExpiresIn) {
				var life Life
				if err := life.UnmarshalJSON(req.ExpiresIn); err != nil {
					return fault.Wrap(err, fault.Invalid, "gateway.changeKey", "%s", err)
				}
				k.ExpiresAt = s.now().UTC().Add(time.Duration(life)).Truncate(time.Microsecond)
			}
		}
		if err := checkLists(*k); err != nil {
			return err
		}
		asked := *k
		if !k.ExpiresAt.After(s.now()) {
			asked.ExpiresAt = time.Time{} // it ended before: that may stay so
		}
		return access.MayMakeKey(principal(c), owner, asked, s.moment())
	}
	var after access.Key
	if err == nil {
		after = keyFrom(key)
		if err = change(&after); err == nil { // a first time, for the ledger
			err = s.audited(c, "key.change", detailsOfKey(after), func() (err error) {
				after, err = s.cfg.Accounts.ChangeKey(c.Request.Context(), key.ID, change)
				return err
			})
		}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, wireKey(after))
}

// keyFrom is a key as it was before it was written for the wire.
func keyFrom(info KeyInfo) access.Key {
	role, _ := access.ParseRole(info.Role) // NoRole for a damaged one
	k := access.Key{ID: info.ID, Owner: info.Owner, Name: info.Name, Role: role, Agent: info.Agent, Databases: info.Databases, Tables: info.Tables, Models: info.Models, CreatedAt: info.CreatedAt}
	if info.ActsFor != nil {
		k.ActsFor = info.ActsFor.Header
	}
	if info.ExpiresAt != nil {
		k.ExpiresAt = *info.ExpiresAt
	}
	return k
}

// detailsOfKey is a key for the ledger.
func detailsOfKey(k access.Key) map[string]any {
	details := map[string]any{"key": k.ID, "key_owner": k.Owner, "name": k.Name, "role": k.Role.String(), "agent": k.Agent, "databases": k.Databases, "tables": k.Tables, "models": k.Models}
	if k.ActsFor != "" {
		details["acts_for"] = k.ActsFor
	}
	if !k.ExpiresAt.IsZero() {
		details["expires_at"] = k.ExpiresAt.Format(time.RFC3339)
	}
	return details
}

func (s *server) deleteKey(c *gin.Context) {
	key, err := s.keyOf(c)
	if err == nil {
		err = s.audited(c, "key.delete", map[string]any{"key": key.ID, "key_owner": key.Owner, "name": key.Name}, func() error {
			return s.cfg.Accounts.DeleteKey(c.Request.Context(), key.ID)
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"deleted": key.ID})
}

// present tells whether a field was given a value.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
