package collection

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
	"strings"

	"sluice/access"
	"sluice/fault"
)

// NewDocument is a document to add, or to put in the place of the one with the same id or source.
type NewDocument struct {
	ID       string // "" makes one
	Title    string // "": the first heading of a Markdown text, else the last part of the source
	Source   string
	Format   string // "": FormatMarkdown
	Text     string
	Metadata Metadata
}

// Result says what Add did.
type Result string

// The results of Add.
const (
	Added     Result = "added"
	Replaced  Result = "replaced"
	Unchanged Result = "unchanged" // nothing was embedded; source and metadata are as asked for
)

// errMoved is Put's when the vectors are not of the collection's space any more.
var errMoved = errors.New("collection: the space was changed meanwhile")

func (d *NewDocument) check(l Limits) error {
	const op = "collection.Add"
	if d.Format == "" {
		d.Format = FormatMarkdown
	}
	switch {
	case d.ID != "" && !idForm.MatchString(d.ID):
		return fault.New(fault.Invalid, op, "a document's id has 1 to 100 letters, digits, _ . : and -, and begins with a letter or a digit")
	case d.Format != FormatMarkdown && d.Format != FormatText:
		return fault.New(fault.Invalid, op, "format is neither %s nor %s", FormatMarkdown, FormatText)
	case len(d.Text) > l.DocumentBytes:
		return &fault.Error{Code: fault.TooLarge, Op: op, Msg: "the text is larger than a document may be", Hint: "cut it into several"}
	case !clean(d.Text):
		return &fault.Error{Code: fault.Invalid, Op: op, Msg: "the text is not UTF-8, or holds a NUL: it is not plain text", Hint: "convert it to text or Markdown first"}
	case strings.TrimSpace(strings.TrimPrefix(d.Text, "\ufeff")) == "":
		return fault.New(fault.Invalid, op, "the text is empty")
	}
	d.Text = strings.TrimPrefix(d.Text, "\ufeff")
	if d.Title == "" {
		d.Title = d.title()
	}
	return errors.Join(checkLine("title", d.Title, maxTitle), checkLine("source", d.Source, maxSource), d.Metadata.check("metadata"))
}

// title finds one for a document that was given none.
func (d *NewDocument) title() string {
	if d.Format == FormatMarkdown {
		for _, line := range strings.SplitN(d.Text, "\n", 50) {
			if m := atxForm.FindStringSubmatch(strings.TrimRight(line, "\r")); m != nil && len(m[1]) == 1 && m[2] != "" && checkLine("title", m[2], maxTitle) == nil {
				return m[2]
			}
		}
	}
	if d.Source != "" {
		return cut(path.Base(d.Source), maxTitle)
	}
	return d.ID
}

// hash is over whatever decides about chunks and vectors, but for the model.
func (d *NewDocument) hash() string {
	h := sha256.New()
	for _, part := range []string{cutting, d.Format, d.Title, d.Text} {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Add stores a document: cut, embedded, whole or not at all. One whose text and title have not changed is not embedded again.
// Somebody who cancels leaves what was.
func (s *Service) Add(ctx context.Context, who access.Principal, name string, d NewDocument) (Document, Result, error) {
	c, err := s.writable(ctx, who, name)
	if err != nil {
		return Document{}, "", err
	}
	if err := d.check(s.cfg.Limits); err != nil {
		return Document{}, "", err
	}
	had, err := s.cfg.Store.Find(ctx, c.ID, d.ID, d.Source)
	found := err == nil
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return Document{}, "", err
	}
	if found && had.Hash == d.hash() {
		return s.annotate(ctx, c, had, d)
	}
	if c, err = s.cfg.Store.Count(ctx, c); err != nil {
		return Document{}, "", err
	}
	if err := s.room(c, had, d); err != nil {
		return Document{}, "", err
	}
	doc := Document{ID: d.ID, Title: d.Title, Source: d.Source, Format: d.Format, Text: d.Text, Metadata: d.Metadata, Hash: d.hash(),
		Bytes: int64(len(d.Text)), AddedBy: who.Owner, AddedAt: s.cfg.Now()}
	if doc.ID == "" {
		doc.ID = s.cfg.NewID()
	}
	for range 3 {
		p := Put{Collection: c.ID, Document: doc, Named: d.ID != ""}
		if p.Chunks, p.Space, err = s.prepare(ctx, c, d); err != nil {
			return Document{}, "", err
		}
		if n := c.Chunks - had.Chunks + int64(len(p.Chunks)); n > s.cfg.Limits.Chunks {
			return Document{}, "", fault.New(fault.TooLarge, "collection.Add", "the collection would have %d chunks; at most %d", n, s.cfg.Limits.Chunks)
		}
		stored, replaced, err := s.cfg.Store.Put(ctx, p)
		switch {
		case err == nil && replaced:
			return stored, Replaced, nil
		case err == nil:
			return stored, Added, nil
		case !errors.Is(err, errMoved):
			return Document{}, "", err
		}
		chunksBefore := c.Chunks
		if c, err = s.writable(ctx, who, name); err != nil {
			return Document{}, "", err
		}
		c.Chunks = chunksBefore
	}
	return Document{}, "", &fault.Error{Code: fault.Busy, Op: "collection.Add", Msg: "the collection's vectors are being replaced just now", Hint: "try again"}
}

// annotate keeps a document's chunks, and takes over what they do not depend on.
func (s *Service) annotate(ctx context.Context, c Collection, had Document, d NewDocument) (Document, Result, error) {
	if d.Source == "" {
		d.Source = had.Source
	}
	if had.Source != d.Source || had.Metadata.text() != d.Metadata.text() {
		if err := s.cfg.Store.Annotate(ctx, c.ID, had.ID, d.Source, d.Metadata); err != nil {
			return Document{}, "", err
		}
		had.Source, had.Metadata = d.Source, d.Metadata
	}
	return had, Unchanged, nil
}

// room refuses what the collection has no room for, before anything is embedded.
func (s *Service) room(c Collection, had Document, d NewDocument) error {
	const op, hint = "collection.Add", "delete documents, or use another collection"
	l := s.cfg.Limits
	if had.ID == "" && c.Documents >= l.Documents {
		return &fault.Error{Code: fault.TooLarge, Op: op, Msg: "the collection has as many documents as it may", Hint: hint}
	}
	if c.Bytes-had.Bytes+int64(len(d.Text)) > l.CollectionBytes {
		return &fault.Error{Code: fault.TooLarge, Op: op, Msg: "the collection has no room for so long a text", Hint: hint}
	}
	return nil
}

// prepare cuts and embeds a document for the space that new vectors belong to. While the configured model is not that
// space's, Run fills another one, and new vectors go there.
func (s *Service) prepare(ctx context.Context, c Collection, d NewDocument) ([]Chunk, Space, error) {
	count := func(texts []string) ([]int, error) {
		n, err := s.cfg.Embedder.Count(ctx, s.cfg.Model, texts)
		if err != nil && fault.CodeOf(err) == fault.Unimplemented {
			return estimate(texts)
		}
		return n, err
	}
	if _, err := s.digest(ctx, s.cfg.Model); err != nil {
		return nil, Space{}, err
	}
	cs, err := chunks(d.Text, d.Format, count)
	if err != nil {
		return nil, Space{}, err
	}
	texts := make([]string, len(cs))
	for i := range cs {
		texts[i] = asEmbedded(d.Title, cs[i].Heading, cs[i].Text)
		cs[i].Terms = terms(texts[i])
	}
	got, err := s.embed(ctx, s.cfg.Model, texts)
	if err != nil {
		return nil, Space{}, err
	}
	for i := range cs {
		cs[i].Vector = got.vectors[i]
	}
	space := Space{Model: s.cfg.Model, Digest: got.digest, Dims: len(got.vectors[0])}
	switch target := c.target(); {
	case target == nil: // the store makes it
	case target.same(space.Model, space.Digest):
		space = *target
	default:
		if space, err = s.cfg.Store.Begin(ctx, c.ID, space); err != nil {
			return nil, Space{}, err
		}
		s.look()
	}
	return cs, space, nil
}

// Documents lists a collection's documents by id, from behind the id after, without their texts.
func (s *Service) Documents(ctx context.Context, who access.Principal, name, after string, limit int) ([]Document, error) {
	c, err := s.get(ctx, who, name)
	if err != nil {
		return nil, err
	}
	if limit <= 0 || limit > maxList {
		limit = maxList
	}
	return s.cfg.Store.Documents(ctx, c.ID, after, limit)
}

// Document gives one with its text.
func (s *Service) Document(ctx context.Context, who access.Principal, name, id string) (Document, error) {
	c, err := s.get(ctx, who, name)
	if err != nil {
		return Document{}, err
	}
	if !idForm.MatchString(id) {
		return Document{}, noDocument(id)
	}
	return s.cfg.Store.Find(ctx, c.ID, id, "")
}

// Remove deletes a document.
func (s *Service) Remove(ctx context.Context, who access.Principal, name, id string) error {
	c, err := s.writable(ctx, who, name)
	if err != nil {
		return err
	}
	if !idForm.MatchString(id) {
		return noDocument(id)
	}
	return s.cfg.Store.Remove(ctx, c.ID, id)
}

func noDocument(id string) error {
	return fault.New(fault.NotFound, "collection", "the collection has no document '%s'", cut(id, 100))
}
