package gateway

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/fault"
)

// me tells a caller whom the server takes them for.
func (s *server) me(c *gin.Context) {
	who := principal(c)
	reply(c, gin.H{"key_id": who.KeyID, "owner": who.Owner, "name": who.Name, "role": who.Role.String(), "agent": who.Agent,
		"databases": who.Databases, "tables": who.Tables, "models": who.Models})
}

func (s *server) listKeys(c *gin.Context, _ int) ([]KeyInfo, error) {
	return s.cfg.Keys.List(c.Request.Context())
}

func (s *server) getKey(c *gin.Context) {
	keys, err := s.cfg.Keys.List(c.Request.Context())
	if err != nil {
		s.fail(c, err)
		return
	}
	i := slices.IndexFunc(keys, func(k KeyInfo) bool { return k.ID == c.Param("id") })
	if i < 0 {
		s.fail(c, fault.New(fault.NotFound, "gateway.getKey", "key '%s' not found", printable(c.Param("id"), 100)))
		return
	}
	reply(c, keys[i])
}

func (s *server) createKey(c *gin.Context) {
	var req struct {
		NewKey
		ActsFor   json.RawMessage `json:"acts_for"`
		ExpiresIn json.RawMessage `json:"expires_in"`
	}
	err := decodeStrict(c, &req)
	if err == nil {
		err = checkNewKey(req.NewKey)
	}
	// A key that lives longer, or may do more, than was asked for would be worse than none.
	if err == nil && (present(req.ActsFor) || present(req.ExpiresIn)) {
		err = &fault.Error{Code: fault.Unimplemented, Op: "gateway.createKey", Msg: "acts_for and expires_in are not part of this version of Sluice",
			Hint: "leave them out, and delete the key when it is no longer needed"}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	id, key, err := s.cfg.Keys.Create(c.Request.Context(), principal(c), req.NewKey)
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	reply(c, gin.H{"id": id, "key": key})
}

func checkNewKey(k NewKey) error {
	const op = "gateway.createKey"
	if strings.TrimSpace(k.Name) == "" || len(k.Name) > 200 {
		return fault.New(fault.Invalid, op, "name is required, with 200 bytes at most")
	}
	_, err := access.ParseRole(k.Role)
	return err
}

func (s *server) deleteKey(c *gin.Context) {
	id := c.Param("id")
	if err := s.cfg.Keys.Delete(c.Request.Context(), id); err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"deleted": id})
}

// present tells whether a field was given a value.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
