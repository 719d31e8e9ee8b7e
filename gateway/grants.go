package gateway

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/fault"
	"sluice/lakecopy"
)

// NewGrant is the request of POST /v1/grants. Which fields a kind has is in docs/ACCESS.md.
type NewGrant struct {
	Principal  string `json:"principal"` // a user's name or a key's id
	Kind       string `json:"kind"`
	Database   string `json:"database,omitempty"`
	Table      string `json:"table,omitempty"`
	Connection string `json:"connection,omitempty"`
	Path       string `json:"path,omitempty"`
	Name       string `json:"name,omitempty"`
	Access     string `json:"access,omitempty"`
}

// GrantInfo is a grant on the wire.
type GrantInfo struct {
	ID string `json:"id"`
	NewGrant
	CreatedBy string    `json:"created_by"`
	CreatedAt time.Time `json:"created_at"`
}

func wireGrant(g access.Grant) GrantInfo {
	return GrantInfo{ID: g.ID, CreatedBy: g.CreatedBy, CreatedAt: g.CreatedAt, NewGrant: NewGrant{Principal: g.Principal, Kind: string(g.Kind), Database: g.Database,
		Table: g.Table, Connection: g.Connection, Path: g.Path, Name: g.Name, Access: g.Access}}
}

// visibleGrants are the grants that the caller may know of: an admin all, others those of their own and of their keys.
func (s *server) visibleGrants(c *gin.Context) ([]GrantInfo, error) {
	grants, err := s.cfg.Accounts.Grants(c.Request.Context())
	if err != nil {
		return nil, err
	}
	keys, err := s.visibleKeys(c)
	if err != nil {
		return nil, err
	}
	who := principal(c)
	all := access.MayAdminister(who) == nil
	wanted, filtered := c.GetQuery("principal")
	var seen []GrantInfo
	for _, g := range grants {
		own := g.Principal == who.Owner || slices.ContainsFunc(keys, func(k KeyInfo) bool { return k.ID == g.Principal })
		if (all || own) && (!filtered || g.Principal == wanted) {
			seen = append(seen, wireGrant(g))
		}
	}
	return seen, nil
}

func (s *server) listGrants(c *gin.Context, _ int) ([]GrantInfo, error) { return s.visibleGrants(c) }

// grantOf finds the grant that a path names among those that the caller may know of.
func (s *server) grantOf(c *gin.Context) (GrantInfo, error) {
	grants, err := s.visibleGrants(c)
	if err != nil {
		return GrantInfo{}, err
	}
	return one(grants, func(g GrantInfo) string { return g.ID }, c.Param("id"), "grant")
}

func (s *server) getGrant(c *gin.Context) {
	g, err := s.grantOf(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, g)
}

func (s *server) createGrant(c *gin.Context) {
	var req NewGrant
	err := s.freshly(c)
	if err == nil {
		err = decodeStrict(c, &req)
	}
	g := access.Grant{ID: "grant_" + rand.Text(), Principal: req.Principal, Kind: access.Kind(req.Kind), Database: req.Database, Table: req.Table,
		Connection: req.Connection, Path: req.Path, Name: req.Name, Access: req.Access, CreatedBy: principal(c).Owner}
	if !access.KeyLike(g.Principal) {
		g.Principal = strings.ToLower(g.Principal)
	}
	if err == nil {
		err = g.Check()
	}
	if err == nil {
		err = s.known(c.Request.Context(), g)
	}
	if err == nil {
		err = s.audited(c, "grant.create", detailsOfGrant(wireGrant(g)), func() (err error) {
			g, err = s.cfg.Accounts.CreateGrant(c.Request.Context(), g)
			return err
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, wireGrant(g))
}

// known refuses a grant on a database or a connection that is not in the settings, and on a collection that is not there: a
// mistyped name would be a right to whatever gets that name later.
func (s *server) known(ctx context.Context, g access.Grant) error {
	const op = "gateway.createGrant"
	if g.Kind == access.GrantCollection && s.cfg.Collections != nil {
		if there, err := s.cfg.Collections.Exists(ctx, g.Name); err != nil {
			return err
		} else if !there {
			return fault.New(fault.Invalid, op, "there is no collection '%s': make it first", printable(g.Name, 200))
		}
	}
	if g.Database != "" && s.cfg.Sources[g.Database] == nil {
		return fault.New(fault.Invalid, op, "there is no database '%s'", printable(g.Database, 200))
	}
	if g.Connection == "" {
		return nil
	}
	if s.cfg.Lake == nil || !slices.ContainsFunc(s.cfg.Lake.Connections(), func(conn lakecopy.Connection) bool { return conn.Name == g.Connection }) {
		return fault.New(fault.Invalid, op, "there is no connection '%s'", printable(g.Connection, 200))
	}
	return nil
}

func (s *server) deleteGrant(c *gin.Context) {
	g, err := s.grantOf(c)
	if err == nil {
		err = s.freshly(c)
	}
	if err == nil {
		err = s.audited(c, "grant.delete", detailsOfGrant(g), func() error { return s.cfg.Accounts.DeleteGrant(c.Request.Context(), g.ID) })
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"deleted": g.ID})
}

// detailsOfGrant is a grant for the ledger.
func detailsOfGrant(g GrantInfo) map[string]any {
	details := map[string]any{"grant": g.ID, "to": g.Principal, "kind": g.Kind}
	for name, v := range map[string]string{"database": g.Database, "table": g.Table, "connection": g.Connection, "path": g.Path, "name": g.Name, "access": g.Access} {
		if v != "" {
			details[name] = v
		}
	}
	return details
}
