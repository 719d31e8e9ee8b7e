package collection

import (
	"context"
	"time"
)

// Collection is a named set of documents.
type Collection struct {
	ID          int64 // the store's own; names can be given again
	Name        string
	Owner       string // a user
	Database    string // whose words the documents explain; "" none
	Description string
	CreatedAt   time.Time

	Documents int64 // this one, and the other counts, only where they are asked for
	Chunks    int64
	Bytes     int64 // of the documents' texts

	Active *Space // whose vectors are searched; nil: nothing was embedded yet
	Next   *Space // that is being filled after a change of the model, nil: none
}

// target is the space that new vectors belong to, nil when there is none yet.
func (c Collection) target() *Space {
	if c.Next != nil {
		return c.Next
	}
	return c.Active
}

// Space is what vectors of one model, in one version of it, have in common. Vectors of two spaces are never compared.
type Space struct {
	ID     int64
	Model  string
	Digest string // of the model's manifest
	Dims   int
	Count  int64 // vectors that it holds
}

// same says whether vectors of a model in a version belong here.
func (s *Space) same(model, digest string) bool {
	return s != nil && s.Model == model && s.Digest == digest
}

// Document is a text of a collection.
type Document struct {
	ID       string // chosen by who adds it, or made
	Title    string
	Source   string // where it comes from, such as a path or a URL; of one collection no two have the same
	Format   string // FormatMarkdown or FormatText
	Text     string // "" in lists
	Metadata Metadata
	Hash     string // of what is embedded and how it was cut
	Bytes    int64  // of Text
	Chunks   int64
	AddedBy  string // a user
	AddedAt  time.Time
}

// The formats of a document.
const (
	FormatMarkdown = "markdown"
	FormatText     = "text"
)

// Chunk is a piece of a document that is found as one passage.
type Chunk struct {
	Heading string    // the headings above it, outermost first, joined by " › "
	Text    string    // as it stands in the document
	Terms   []string  // for search by words, in order
	Vector  []float32 // of length 1
}

// Piece is a chunk that has no vector in a space yet.
type Piece struct {
	ID      int64
	Title   string
	Heading string
	Text    string
}

// Vector is that of a chunk.
type Vector struct {
	Chunk  int64
	Values []float32
}

// Hit is a chunk that a search found; a higher score is better.
type Hit struct {
	Chunk int64
	Score float64
}

// Passage is what a search gives.
type Passage struct {
	Collection string
	Document   string // id
	Title      string
	Heading    string
	Text       string
	Source     string
	Metadata   Metadata
	Score      float64 // 1: first by vectors and by words; comparable within one search only
	Similarity float64 // cosine of the vectors; 0 when it was found by words alone
}

// Near asks for the chunks whose vectors are nearest. All spaces have the same model and dimension.
type Near struct {
	Spaces []Space
	Vector []float32
	Filter Metadata
	Limit  int
}

// Words asks for the chunks that share terms with a question, best first.
type Words struct {
	Collections []int64
	Terms       []string // distinct
	Filter      Metadata
	Limit       int
}

// Put is a document that is stored, or replaces the one with its id or its source.
type Put struct {
	Collection int64
	Document   Document // with the id for a new one
	Named      bool     // the id was chosen by the caller, and is not just for a new one
	Chunks     []Chunk
	Space      Space // of the vectors; ID 0: the collection has none yet
}

// Store keeps collections. Names and ids that are not there are NotFound, but no rights are checked here.
type Store interface {
	// Collections lists all by name, and Collection gives one, without counts: each search asks. Count fills them in.
	Collections(ctx context.Context) ([]Collection, error)
	Collection(ctx context.Context, name string) (Collection, error)
	Count(ctx context.Context, c Collection) (Collection, error)
	// Create makes an empty collection. A name that is taken is a Conflict.
	Create(ctx context.Context, c Collection) error
	Delete(ctx context.Context, collection int64) error
	// Disown takes the collections of a user from them, and says how many there were.
	Disown(ctx context.Context, owner string) (int, error)

	// Documents lists those of a collection by id, from behind the id after.
	Documents(ctx context.Context, collection int64, after string, limit int) ([]Document, error)
	// Find gives the document with an id, or, when there is none, with a source; empty ones match nothing.
	Find(ctx context.Context, collection int64, id, source string) (Document, error)
	// Put stores a document whole or not at all. errMoved when the vectors' space is not the collection's target any more.
	Put(ctx context.Context, p Put) (Document, bool, error)
	// Annotate changes what is not embedded: source and metadata.
	Annotate(ctx context.Context, collection int64, id, source string, metadata Metadata) error
	Remove(ctx context.Context, collection int64, id string) error

	// Begin starts another space beside the active one, instead of one that was begun before.
	Begin(ctx context.Context, collection int64, s Space) (Space, error)
	// Missing gives chunks that have no vector in the space that was begun.
	Missing(ctx context.Context, collection int64, space Space, limit int) ([]Piece, error)
	// Fill stores vectors. Those of chunks that are gone meanwhile are dropped.
	Fill(ctx context.Context, collection int64, space Space, vectors []Vector) error
	// Promote makes the space that was begun the active one and drops the other, if no chunk lacks a vector.
	Promote(ctx context.Context, collection int64, space Space) (bool, error)

	Nearest(ctx context.Context, q Near) ([]Hit, error)
	Matching(ctx context.Context, q Words) ([]Hit, error)
	// Passages gives what the chunks say, without scores. Chunks that are gone are left out.
	Passages(ctx context.Context, chunks []int64) (map[int64]Passage, error)
	Close() error
}
