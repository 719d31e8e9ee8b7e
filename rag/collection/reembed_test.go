package collection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"sluice/fault"
	"sluice/internal/pgtest"
)

// running starts Run, which ends with the test, or with the function that is given.
func running(t *testing.T, s *Service) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func fill(t *testing.T, s *Service, n int) {
	t.Helper()
	make1(t, s, ann, "c")
	for i := range n {
		put(t, s, ann, "c", NewDocument{ID: fmt.Sprintf("d%03d", i), Text: fmt.Sprintf("the colour of thing%d is shade%d", i, i)})
	}
}

// found1 is the passage of a document among those that a search finds.
func found1(t *testing.T, s *Service, question, document string) *Passage {
	t.Helper()
	for _, p := range find(t, s, ann, Query{Text: question, Limit: maxLimit}) {
		if p.Document == document {
			return &p
		}
	}
	return nil
}

// A model of another dimension takes over: until its vectors are whole the old ones answer, and then they alone are there.
func TestAnotherModelTakesOverWhenItsVectorsAreWhole(t *testing.T) {
	inBoth(t, func(t *testing.T, store Store) {
		h := newHashing()
		fill(t, service(t, store, h, nil), 2*batch+10)
		h.set("other", "o1", 100)
		var once sync.Once
		half, goOn := make(chan struct{}), make(chan struct{})
		batches := 0
		h.before = func(texts []string) error {
			if len(texts) > 1 {
				if batches++; batches == 2 {
					once.Do(func() { close(half); <-goOn })
				}
			}
			return nil
		}
		s := service(t, store, h, func(c *Config) { c.Model = "other" })
		running(t, s)
		<-half
		c := must[Collection](t)(s.Get(t.Context(), ann, "c"))
		if c.Active.Model != "minilm" || c.Next == nil || c.Next.Model != "other" || c.Next.Count != batch || c.Next.Dims != 100 {
			t.Errorf("active %+v, next %+v", c.Active, c.Next)
		}
		found := must[Found](t)(s.Find(t.Context(), ann, Query{Text: "colour of thing7", Limit: 1}))
		if len(found.TextOnly) != 0 || len(found.Passages) != 1 || found.Passages[0].Document != "d007" || found.Passages[0].Similarity < 0.5 {
			t.Errorf("%+v", found)
		}
		// What is added meanwhile has its vector in the new space, and is found by its words.
		if _, _, err := s.Add(t.Context(), ann, "c", NewDocument{ID: "late", Text: "a latecomer"}); err != nil {
			t.Error(err)
		}
		if err := s.Remove(t.Context(), ann, "c", "d003"); err != nil {
			t.Error(err)
		}
		if late := found1(t, s, "latecomer", "late"); late == nil || late.Similarity != 0 {
			t.Errorf("%+v", late)
		}
		close(goOn)
		eventually(t, "the other model's vectors are the active ones", func() bool {
			c, err := s.Get(t.Context(), ann, "c")
			return err == nil && c.Next == nil && c.Active.Model == "other" && c.Active.Count == c.Chunks && c.Chunks == 2*batch+10
		})
		if late := found1(t, s, "latecomer", "late"); late == nil || late.Similarity == 0 {
			t.Errorf("%+v", late)
		}
	})
}

// A model that was pulled again under its name has other vectors: the old ones cannot be asked any more, so words answer.
func TestAModelPulledAgainAnswersByWordsUntilItsVectorsAreWhole(t *testing.T) {
	inBoth(t, func(t *testing.T, store Store) {
		h := newHashing()
		s := service(t, store, h, nil)
		fill(t, s, 20)
		h.set("minilm", "d2", 64)
		found := must[Found](t)(s.Find(t.Context(), ann, Query{Text: "colour of thing7", Limit: 1}))
		if len(found.TextOnly) != 1 || len(found.Passages) != 1 || found.Passages[0].Document != "d007" || found.Passages[0].Similarity != 0 {
			t.Errorf("%+v", found)
		}
		running(t, s)
		eventually(t, "the new version's vectors are there", func() bool {
			c, err := s.Get(t.Context(), ann, "c")
			return err == nil && c.Active.Digest == "d2" && c.Next == nil
		})
		found = must[Found](t)(s.Find(t.Context(), ann, Query{Text: "colour of thing7", Limit: 1}))
		if len(found.TextOnly) != 0 || found.Passages[0].Document != "d007" || found.Passages[0].Similarity == 0 {
			t.Errorf("%+v", found)
		}
		// Without the model at all the collection can still be searched.
		h.set("minilm", "", 64)
		if found = must[Found](t)(s.Find(t.Context(), ann, Query{Text: "thing7", Limit: 1})); len(found.TextOnly) != 1 || len(found.Passages) != 1 {
			t.Errorf("%+v", found)
		}
	})
}

// A server that was killed while it embedded goes on where it was.
func TestAKilledRebuildGoesOnWhereItWas(t *testing.T) {
	dir := t.TempDir()
	pg := pgtest.New(t)
	for name, open := range map[string]func() Store{
		"embedded": func() Store { return embeddedStore(t, dir) },
		"postgres": func() Store { return postgresStore(t, pg.URL) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHashing()
			store := open()
			fill(t, service(t, store, h, nil), 3*batch)
			h.set("minilm", "d2", 64)
			stuck := make(chan struct{})
			batches := 0
			h.before = func(texts []string) error {
				if len(texts) > 1 {
					if batches++; batches == 3 {
						close(stuck)
					}
					if batches >= 3 {
						return errors.New("killed")
					}
				}
				return nil
			}
			s := service(t, store, h, nil)
			stop := running(t, s)
			<-stuck
			stop()
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}

			h.before = nil
			before := h.count()
			again := open()
			s = service(t, again, h, nil)
			running(t, s)
			eventually(t, "it is whole", func() bool {
				c, err := s.Get(t.Context(), ann, "c")
				return err == nil && c.Active.Digest == "d2" && c.Next == nil && c.Active.Count == 3*batch
			})
			if n := h.count() - before; n != batch {
				t.Errorf("%d texts were embedded again, only the last %d were missing", n, batch)
			}
		})
	}
}

// Somebody goes back to the model whose vectors are still there, after documents were added for the other one.
func TestGoingBackToTheOldModelLosesNothing(t *testing.T) {
	inBoth(t, func(t *testing.T, store Store) {
		h := newHashing()
		fill(t, service(t, store, h, nil), 5)
		h.set("other", "o1", 32)
		other := service(t, store, h, func(c *Config) { c.Model = "other" })
		if _, _, err := other.Add(t.Context(), ann, "c", NewDocument{ID: "late", Text: "a latecomer"}); err != nil {
			t.Fatal(err)
		}
		s := service(t, store, h, nil)
		running(t, s)
		eventually(t, "all have the old model's vectors", func() bool {
			c, err := s.Get(t.Context(), ann, "c")
			return err == nil && c.Next == nil && c.Active.Model == "minilm" && c.Active.Count == 6
		})
		if late := found1(t, s, "latecomer", "late"); late == nil || late.Similarity == 0 {
			t.Errorf("%+v", late)
		}
	})
}

// Several add the same document, and others, at the same time: nothing is there twice, nothing is lost.
func TestManyAddAtTheSameTime(t *testing.T) {
	inBoth(t, func(t *testing.T, store Store) {
		s := service(t, store, newHashing(), nil)
		make1(t, s, ann, "c")
		var all sync.WaitGroup
		errs := make(chan error, 64)
		for i := range 16 {
			all.Go(func() {
				_, _, err := s.Add(context.Background(), ann, "c", NewDocument{Source: "same", Text: fmt.Sprint("version ", i)})
				errs <- err
				_, _, err = s.Add(context.Background(), ann, "c", NewDocument{ID: fmt.Sprint("own", i), Text: fmt.Sprint("own ", i)})
				errs <- err
			})
		}
		all.Wait()
		close(errs)
		for err := range errs {
			if err != nil && fault.CodeOf(err) != fault.Busy {
				t.Error(err)
			}
		}
		c := must[Collection](t)(s.Get(t.Context(), ann, "c"))
		if c.Documents != 17 || c.Chunks != 17 || c.Active.Count != 17 {
			t.Errorf("%+v %+v", c, c.Active)
		}
	})
}
