package gateway

import (
	"cmp"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/fault"
	"sluice/rag/collection"
)

// NewDocument is the request of POST /v1/rag/collections/{name}/documents.
type NewDocument struct {
	ID       string         `json:"id,omitempty"`     // the one with this id is replaced
	Source   string         `json:"source,omitempty"` // else the one with this source
	Title    string         `json:"title,omitempty"`
	Format   string         `json:"format,omitempty"` // markdown, which is the default, or text
	Text     string         `json:"text"`
	Metadata map[string]any `json:"metadata,omitempty"` // texts, numbers, truth values
}

// DocumentInfo is a document on the wire.
type DocumentInfo struct {
	ID       string         `json:"id"`
	Title    string         `json:"title"`
	Source   string         `json:"source"`
	Format   string         `json:"format"`
	Metadata map[string]any `json:"metadata,omitempty"`
	Bytes    int64          `json:"bytes"`
	Chunks   int64          `json:"chunks"`
	AddedBy  string         `json:"added_by"`
	AddedAt  time.Time      `json:"added_at"`
	Text     string         `json:"text,omitempty"`   // of one document
	Result   string         `json:"result,omitempty"` // of an addition: added, replaced or unchanged
}

// usualDocuments is how many documents are listed without a limit.
const usualDocuments = 100

func wireDocument(d collection.Document) DocumentInfo {
	return DocumentInfo{ID: d.ID, Title: d.Title, Source: d.Source, Format: d.Format, Metadata: d.Metadata, Bytes: d.Bytes, Chunks: d.Chunks,
		AddedBy: d.AddedBy, AddedAt: d.AddedAt, Text: d.Text}
}

func (s *server) listDocuments(c *gin.Context) {
	limit := usualDocuments
	var err error
	if text, given := c.GetQuery("limit"); given {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxList {
			err = fault.New(fault.Invalid, "gateway.listDocuments", "limit must be a number from 1 to %d", maxList)
		}
	}
	var svc *collection.Service
	if err == nil {
		svc, err = s.collections()
	}
	var all []collection.Document
	if err == nil {
		// one more would tell whether there is a next page; a page of maxList is the longest, so a full one may have an empty next
		all, err = svc.Documents(c.Request.Context(), principal(c), c.Param("name"), c.Query("cursor"), limit)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	out, meta := []DocumentInfo{}, gin.H{}
	for _, d := range all {
		out = append(out, wireDocument(d))
	}
	if len(out) == limit {
		meta["next_cursor"] = out[limit-1].ID
	}
	reply(c, out, meta)
}

func (s *server) addDocument(c *gin.Context) {
	var req NewDocument
	err := decodeStrict(c, &req)
	var svc *collection.Service
	if err == nil {
		svc, err = s.collections()
	}
	if err == nil {
		err = svc.MayChange(c.Request.Context(), principal(c), c.Param("name"))
	}
	var doc collection.Document
	var result collection.Result
	if err == nil {
		details := map[string]any{"collection": c.Param("name"), "document": cmp.Or(req.ID, req.Source), "bytes": len(req.Text)}
		err = s.audited(c, "document.put", details, func() (err error) {
			doc, result, err = svc.Add(c.Request.Context(), principal(c), c.Param("name"), collection.NewDocument{ID: req.ID, Title: req.Title, Source: req.Source,
				Format: req.Format, Text: req.Text, Metadata: req.Metadata})
			return err
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	info := wireDocument(doc)
	info.Text, info.Result = "", string(result)
	reply(c, info)
}

func (s *server) getDocument(c *gin.Context) {
	svc, err := s.collections()
	var doc collection.Document
	if err == nil {
		doc, err = svc.Document(c.Request.Context(), principal(c), c.Param("name"), c.Param("id"))
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, wireDocument(doc))
}

func (s *server) deleteDocument(c *gin.Context) {
	svc, err := s.collections()
	if err == nil {
		err = svc.MayChange(c.Request.Context(), principal(c), c.Param("name"))
	}
	if err == nil {
		details := map[string]any{"collection": c.Param("name"), "document": c.Param("id")}
		err = s.audited(c, "document.delete", details, func() error {
			return svc.Remove(c.Request.Context(), principal(c), c.Param("name"), c.Param("id"))
		})
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, gin.H{"deleted": c.Param("id")})
}
