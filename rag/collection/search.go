package collection

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"sluice/access"
	"sluice/fault"
)

// Query is a search.
type Query struct {
	Collections []string // nil: all that the caller may read
	Database    string   // only collections that explain this database; "" any
	Text        string
	Limit       int // passages; 0: 5; at most 50
	Filter      Metadata
}

// Found is what a search gives.
type Found struct {
	Passages []Passage
	// TextOnly names the collections that were searched by words alone: their vectors are of a model, or a version of it, that
	// is not installed any more, and those of the new one are not whole yet.
	TextOnly []string
}

// fusion is the k of reciprocal rank fusion: a list gives its i-th hit 1/(k+i). Cormack, Clarke and Büttcher, Reciprocal Rank
// Fusion outperforms Condorcet and individual Rank Learning Methods, SIGIR 2009, found 60.
const fusion = 60

const (
	pool     = 50 // hits of each list that is fused; at least the limit
	maxTerms = 32 // of a question that are searched for
)

func (q *Query) check() error {
	const op = "collection.Search"
	switch {
	case len(q.Text) > maxQuery:
		return fault.New(fault.TooLarge, op, "query has %d bytes; at most %d", len(q.Text), maxQuery)
	case !clean(q.Text):
		return fault.New(fault.Invalid, op, "query is not UTF-8, or holds a NUL")
	case strings.TrimSpace(q.Text) == "":
		return fault.New(fault.Invalid, op, "query is required")
	case q.Limit < 0 || q.Limit > maxLimit:
		return fault.New(fault.Invalid, op, "limit must be a number from 1 to %d", maxLimit)
	}
	q.Limit = cmp.Or(q.Limit, usualLimit)
	return q.Filter.check("filter")
}

// Find searches collections by vectors and by words, and fuses both by rank. A collection that is named and may not be read is
// NotFound; without names all that may be read are searched.
func (s *Service) Find(ctx context.Context, who access.Principal, q Query) (Found, error) {
	if err := q.check(); err != nil {
		return Found{}, err
	}
	for attempt := 0; ; attempt++ {
		within, err := s.within(ctx, who, q)
		if err != nil || len(within) == 0 {
			return Found{Passages: []Passage{}}, err
		}
		found, err := s.find(ctx, within, q)
		if err != nil {
			return Found{}, err
		}
		// A space that was made the active one while we searched has taken the other's vectors away.
		now, err := s.within(ctx, who, q)
		if err != nil {
			return Found{}, err
		}
		if sameSpaces(within, now) || attempt == 2 {
			return found, nil
		}
	}
}

// Search gives the passages that explain a question about a database, of the collections tied to it that who may read. It is
// for the agent. What documents say is data: it may go into a prompt as facts, and decides about nothing.
func (s *Service) Search(ctx context.Context, who access.Principal, database, question string, n int) ([]Passage, error) {
	if database == "" {
		return nil, fault.Bug("collection: a search for no database")
	}
	found, err := s.Find(ctx, who, Query{Database: database, Text: question, Limit: n})
	return found.Passages, err
}

// within are the collections that are searched.
func (s *Service) within(ctx context.Context, who access.Principal, q Query) ([]Collection, error) {
	all, err := s.readable(ctx, who)
	if err != nil {
		return nil, err
	}
	if q.Database != "" {
		all = slices.DeleteFunc(all, func(c Collection) bool { return c.Database != q.Database })
	}
	if q.Collections == nil {
		return all, nil
	}
	var named []Collection
	for _, name := range distinct(q.Collections, len(q.Collections)) {
		i := slices.IndexFunc(all, func(c Collection) bool { return c.Name == name })
		if i < 0 {
			return nil, unknown(name)
		}
		named = append(named, all[i])
	}
	return named, nil
}

func sameSpaces(a, b []Collection) bool {
	return slices.EqualFunc(a, b, func(x, y Collection) bool {
		return x.ID == y.ID && (x.Active == nil) == (y.Active == nil) && (x.Active == nil || x.Active.ID == y.Active.ID)
	})
}

func (s *Service) find(ctx context.Context, within []Collection, q Query) (Found, error) {
	found := Found{Passages: []Passage{}}
	n := max(pool, q.Limit)
	var lists [][]Hit
	similar := map[int64]float64{}
	groups, textOnly, err := s.groups(ctx, within)
	if err != nil {
		return found, err
	}
	found.TextOnly = textOnly
	for _, g := range groups {
		got, err := s.embed(ctx, g[0].Model, []string{q.Text})
		if err != nil {
			return found, err
		}
		if got.digest != g[0].Digest {
			return found, &fault.Error{Code: fault.Busy, Op: "collection.Search", Msg: "the embedding model was replaced just now", Hint: "try again"}
		}
		hits, err := s.cfg.Store.Nearest(ctx, Near{Spaces: g, Vector: got.vectors[0], Filter: q.Filter, Limit: n})
		if err != nil {
			return found, err
		}
		for _, h := range hits {
			similar[h.Chunk] = h.Score
		}
		lists = append(lists, hits)
	}
	ids := make([]int64, len(within))
	for i, c := range within {
		ids[i] = c.ID
	}
	if words := distinct(terms(q.Text), maxTerms); len(words) > 0 {
		hits, err := s.cfg.Store.Matching(ctx, Words{Collections: ids, Terms: words, Filter: q.Filter, Limit: n})
		if err != nil {
			return found, err
		}
		lists = append(lists, hits)
	}
	best := fuse(lists, q.Limit)
	chunks := make([]int64, len(best))
	for i, h := range best {
		chunks[i] = h.Chunk
	}
	passages, err := s.cfg.Store.Passages(ctx, chunks)
	if err != nil {
		return found, err
	}
	for _, h := range best {
		if p, ok := passages[h.Chunk]; ok {
			p.Score, p.Similarity = h.Score, similar[h.Chunk]
			found.Passages = append(found.Passages, p)
		}
	}
	return found, nil
}

// groups sorts the active spaces by model, version and dimension: one question vector for each. A collection whose vectors
// were made by what is not installed any more has no question vector, as one of another model would say nothing.
func (s *Service) groups(ctx context.Context, within []Collection) (groups [][]Space, textOnly []string, err error) {
	digests := map[string]string{}
	for _, c := range within {
		if c.Active == nil {
			continue
		}
		a := *c.Active
		now, known := digests[a.Model]
		if !known {
			now, err = s.cfg.Embedder.Digest(ctx, a.Model)
			if err != nil && fault.CodeOf(err) != fault.NotFound {
				return nil, nil, err
			}
			digests[a.Model] = now
		}
		if now != a.Digest {
			textOnly = append(textOnly, c.Name)
			s.look()
			continue
		}
		i := slices.IndexFunc(groups, func(g []Space) bool {
			return g[0].Model == a.Model && g[0].Digest == a.Digest && g[0].Dims == a.Dims
		})
		if i < 0 {
			groups, i = append(groups, nil), len(groups)
		}
		groups[i] = append(groups[i], a)
	}
	return groups, textOnly, nil
}

// fuse joins ranked lists to one of the n best. A hit that is first in all of them has the score 1.
func fuse(lists [][]Hit, n int) []Hit {
	if len(lists) == 0 {
		return nil
	}
	sum := map[int64]float64{}
	for _, list := range lists {
		for i, h := range list {
			sum[h.Chunk] += 1 / float64(fusion+i+1)
		}
	}
	out := make([]Hit, 0, len(sum))
	for chunk, score := range sum {
		out = append(out, Hit{chunk, score * (fusion + 1) / float64(len(lists))})
	}
	slices.SortFunc(out, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Chunk, b.Chunk)) })
	return out[:min(n, len(out))]
}
