package gateway

import (
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/fault"
	"sluice/rag/collection"
)

// CollectionInfo is a collection of documents on the wire.
type CollectionInfo struct {
	Name        string       `json:"name"`
	Owner       string       `json:"owner"`
	Database    string       `json:"database,omitempty"`
	Description string       `json:"description,omitempty"`
	Access      string       `json:"access"` // of the caller: read or write, which is both
	Documents   int64        `json:"documents"`
	Chunks      int64        `json:"chunks"`
	Bytes       int64        `json:"bytes"`
	Vectors     *VectorsInfo `json:"vectors,omitempty"` // nothing was embedded yet without
	CreatedAt   time.Time    `json:"created_at"`
}

// VectorsInfo says of which model a collection's vectors are.
type VectorsInfo struct {
	Model      string       `json:"model"`
	Digest     string       `json:"digest"`
	Dimensions int          `json:"dimensions"`
	Rebuild    *RebuildInfo `json:"rebuild,omitempty"`
}

// RebuildInfo is how far the vectors of another model are.
type RebuildInfo struct {
	Model string `json:"model"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

// NewCollection is the request of POST /v1/rag/collections.
type NewCollection struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Database    string `json:"database,omitempty"` // whose words the documents explain
}

// collections is the service of documents, or a sentence when there is none.
func (s *server) collections() (*collection.Service, error) {
	if s.cfg.Collections == nil {
		return nil, fault.New(fault.Unimplemented, "gateway.collections", "this server keeps no documents")
	}
	return s.cfg.Collections, nil
}

func (s *server) wireCollection(who access.Principal, c collection.Collection) CollectionInfo {
	info := CollectionInfo{Name: c.Name, Owner: c.Owner, Database: c.Database, Description: c.Description, Access: "read",
		Documents: c.Documents, Chunks: c.Chunks, Bytes: c.Bytes, CreatedAt: c.CreatedAt}
	if s.cfg.Collections.MayWrite(who, c) {
		info.Access = "write"
	}
	if a := c.Active; a != nil {
		info.Vectors = &VectorsInfo{Model: a.Model, Digest: a.Digest, Dimensions: a.Dims}
		if n := c.Next; n != nil {
			info.Vectors.Rebuild = &RebuildInfo{Model: n.Model, Done: n.Count, Total: c.Chunks}
		}
	}
	return info
}

func (s *server) listCollections(c *gin.Context, _ int) ([]CollectionInfo, error) {
	svc, err := s.collections()
	if err != nil {
		return nil, err
	}
	all, err := svc.List(c.Request.Context(), principal(c))
	var out []CollectionInfo
	for _, one := range all {
		out = append(out, s.wireCollection(principal(c), one))
	}
	return out, err
}

func (s *server) getCollection(c *gin.Context) {
	svc, err := s.collections()
	var one collection.Collection
	if err == nil {
		one, err = svc.Get(c.Request.Context(), principal(c), c.Param("name"))
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, s.wireCollection(principal(c), one))
}

func (s *server) createCollection(c *gin.Context) {
	var req NewCollection
	err := decodeStrict(c, &req)
	var svc *collection.Service
	if err == nil {
		svc, err = s.collections()
	}
	if err == nil && req.Database != "" && (s.cfg.Sources[req.Database] == nil || !access.MayDatabase(principal(c), req.Database)) {
		err = fault.New(fault.NotFound, "gateway.createCollection", "there is no database '%s' that you may read", printable(req.Database, 63))
	}
	made := collection.Collection{Name: req.Name, Description: req.Description, Database: req.Database}
	if err == nil { // before the ledger: what is refused leaves no entry
		err = svc.MayCreate(c.Request.Context(), principal(c), made)
	}
	if err == nil {
		err = s.audited(c, "collection.create", map[string]any{"collection": req.Name}, func() (err error) {
			made, err = svc.Create(c.Request.Context(), principal(c), made)
			return err
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, s.wireCollection(principal(c), made))
}

// deleteCollection takes the grants for its name away too: they would be rights to whatever gets that name later.
func (s *server) deleteCollection(c *gin.Context) {
	name, ctx := c.Param("name"), c.Request.Context()
	svc, err := s.collections()
	if err == nil {
		err = svc.MayChange(ctx, principal(c), name)
	}
	if err == nil {
		err = s.audited(c, "collection.delete", map[string]any{"collection": name}, func() error { return svc.Delete(ctx, principal(c), name) })
	}
	var grants []access.Grant
	if err == nil {
		grants, err = s.cfg.Accounts.Grants(ctx)
	}
	for _, g := range grants {
		if err == nil && g.Kind == access.GrantCollection && g.Name == name {
			err = s.audited(c, "grant.delete", detailsOfGrant(wireGrant(g)), func() error { return s.cfg.Accounts.DeleteGrant(ctx, g.ID) })
		}
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"deleted": name})
}

// PassageQuery is the request of POST /v1/rag/search.
type PassageQuery struct {
	Query       string         `json:"query"`
	Collections []string       `json:"collections,omitempty"` // absent: all that the caller may read
	Database    string         `json:"database,omitempty"`    // only collections that explain this one
	Limit       int            `json:"limit,omitempty"`       // default 5
	Filter      map[string]any `json:"filter,omitempty"`      // metadata that must be equal
}

// PassageInfo is a passage that a search found.
type PassageInfo struct {
	Collection string         `json:"collection"`
	Document   string         `json:"document"`
	Title      string         `json:"title"`
	Heading    string         `json:"heading"`
	Text       string         `json:"text"`
	Source     string         `json:"source"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Score      float64        `json:"score"` // 1: first by vectors and by words; of one answer only
	Similarity float64        `json:"similarity,omitempty"`
}

// PassagesInfo is the answer of POST /v1/rag/search.
type PassagesInfo struct {
	Passages []PassageInfo `json:"passages"`
	TextOnly []string      `json:"text_only,omitempty"` // collections whose vectors are being made anew: searched by words alone
}

func (s *server) searchPassages(c *gin.Context) {
	var req PassageQuery
	err := decodeStrict(c, &req)
	var svc *collection.Service
	if err == nil {
		svc, err = s.collections()
	}
	var found collection.Found
	if err == nil {
		found, err = svc.Find(c.Request.Context(), principal(c), collection.Query{Collections: req.Collections, Database: req.Database, Text: req.Query, Limit: req.Limit, Filter: req.Filter})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	out := PassagesInfo{Passages: []PassageInfo{}, TextOnly: found.TextOnly}
	for _, p := range found.Passages {
		out.Passages = append(out.Passages, PassageInfo{Collection: p.Collection, Document: p.Document, Title: p.Title, Heading: p.Heading, Text: p.Text,
			Source: p.Source, Metadata: p.Metadata, Score: p.Score, Similarity: p.Similarity})
	}
	reply(c, out)
}
