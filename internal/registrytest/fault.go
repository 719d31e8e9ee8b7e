package registrytest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Kind is what goes wrong.
type Kind int

// The kinds. Cut, Stall and Flip happen at Fault.At, when an answer covers it.
const (
	Cut     Kind = iota + 1 // the connection ends, the bytes before are sent
	Stall                   // no further byte, until the client leaves
	Flip                    // the byte is another one
	NoRange                 // the whole is sent, whatever range was asked
	Answer                  // Fault.Status, with Retry-After
	Instead                 // Fault.Handler answers
)

// Fault is something that goes wrong.
type Fault struct {
	Do         Kind
	Method     string // "": GET
	Path       string // a part of the path, such as a digest
	At         int64  // offset in the blob
	Times      int    // how often; 0: always
	Status     int
	RetryAfter string
	Handler    http.Handler
}

// Rule is a Fault in force.
type Rule struct {
	Fault
	Reached <-chan struct{} // closed when it happens for the first time

	mu      sync.Mutex
	reached chan struct{}
	hits    int
}

// Add puts a fault in force.
func (r *Registry) Add(f Fault) *Rule {
	if f.Method == "" {
		f.Method = http.MethodGet
	}
	reached := make(chan struct{})
	rule := &Rule{Fault: f, Reached: reached, reached: reached}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = append(r.rules, rule)
	return rule
}

// Remove ends a fault.
func (r *Registry) Remove(rule *Rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = slices.DeleteFunc(r.rules, func(have *Rule) bool { return have == rule })
}

// Hits tells how often it happened.
func (f *Rule) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// take says whether it happens once more.
func (f *Rule) take() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Times > 0 && f.hits >= f.Times {
		return false
	}
	if f.hits++; f.hits == 1 {
		close(f.reached)
	}
	return true
}

func (f *Rule) answer(w http.ResponseWriter) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.WriteHeader(f.Status)
}

func (r *Registry) matching(q *http.Request, log *Request) []*Rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*Rule
	for _, rule := range r.rules {
		if rule.Method == q.Method && strings.Contains(log.Path, rule.Path) {
			out = append(out, rule)
		}
	}
	return out
}

// writer does harm to a body.
type writer struct {
	http.ResponseWriter
	registry *Registry
	request  *http.Request
	log      *Request
	rules    []*Rule
	at       int64 // offset in the blob of the next byte
	status   int
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status.
func (w *writer) WriteHeader(status int) {
	w.status = status
	w.registry.mu.Lock()
	w.log.Status = status
	w.registry.mu.Unlock()
	w.ResponseWriter.WriteHeader(status)
}

// Write does harm to the bytes at the places that the rules name.
func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.status >= http.StatusMultipleChoices {
		return w.send(p)
	}
	for _, rule := range w.rules {
		i := rule.At - w.at
		if i < 0 || i >= int64(len(p)) || !rule.take() {
			continue
		}
		switch rule.Do {
		case Flip:
			p = slices.Clone(p)
			p[i] ^= 0x20
		case Cut:
			w.flush(p[:i])
			panic(http.ErrAbortHandler)
		case Stall:
			w.flush(p[:i])
			select {
			case <-w.request.Context().Done():
			case <-w.registry.closed:
			}
			panic(http.ErrAbortHandler)
		}
	}
	return w.send(p)
}

func (w *writer) flush(p []byte) {
	if _, err := w.send(p); err == nil {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the client is gone otherwise, which is what comes next
	}
}

func (w *writer) send(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.at += int64(n)
	w.registry.mu.Lock()
	w.log.Sent += int64(n)
	w.registry.mu.Unlock()
	return n, err
}
