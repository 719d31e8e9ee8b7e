package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/fault"
)

// Ledger keeps what must leave a trace. cmd/sluice wires it to the control store.
type Ledger interface {
	// Append returns nil when the entry is on the disk. What it records must not happen before that.
	Append(ctx context.Context, e AuditEvent) error
	// Entries lists entries, newest first.
	Entries(ctx context.Context, f AuditFilter) ([]AuditEntry, error)
	// Verify walks the whole ledger.
	Verify(ctx context.Context) (AuditVerdict, error)
}

// AuditEvent is what is about to happen.
type AuditEvent struct {
	Kind      string // such as "key.create"
	Principal string // id of the key or session, "" for nobody
	RequestID string
	Details   map[string]any // never secrets, never rows
}

// AuditEntry is one entry of the ledger on the wire. Hash is SHA-256 over all the others and the hash before
// (docs/SECURITY.md).
type AuditEntry struct {
	Seq       int64           `json:"seq"`
	Time      time.Time       `json:"time"`
	Kind      string          `json:"kind"`
	Principal string          `json:"principal"`
	RequestID string          `json:"request_id"`
	Details   json.RawMessage `json:"details"`
	Prev      string          `json:"prev"` // hexadecimal
	Hash      string          `json:"hash"`
}

// AuditFilter chooses entries. Zero values choose all.
type AuditFilter struct {
	Kind      string // exactly; or a beginning that ends with a point, "key."
	Principal string
	Since     time.Time
	Before    int64 // entries with lower numbers only; 0: all
	Limit     int   // at most; required
}

// AuditVerdict is what a walk through the ledger found.
type AuditVerdict struct {
	Status   string `json:"status"` // intact, partial or tampered
	Entries  int64  `json:"entries"`
	FirstBad int64  `json:"first_bad,omitempty"` // number of the first entry that is altered or missing
	Reason   string `json:"reason,omitempty"`
	Seq      int64  `json:"seq"`  // of the last entry; with Hash it is what somebody may note down
	Hash     string `json:"hash"` // of the last entry, hexadecimal
}

// record puts into the ledger what the caller of a request is about to do. When it returns an error, it must not be done.
func (s *server) record(c *gin.Context, kind string, details map[string]any) error {
	return s.recordAs(c, principal(c), kind, details)
}

// recordAs is record for who is not yet, or no longer, the request's principal, as in a login.
func (s *server) recordAs(c *gin.Context, who access.Principal, kind string, details map[string]any) error {
	ctx := context.WithoutCancel(c.Request.Context()) // an entry half waited for would be there or not, and nobody would know
	clean := make(map[string]any, len(details)+1)
	for name, v := range details {
		clean[name] = Presentable(ctx, v)
	}
	if who.Owner != "" {
		clean["owner"] = who.Owner
	}
	err := s.cfg.Ledger.Append(ctx, AuditEvent{Kind: kind, Principal: who.KeyID, RequestID: RequestIDOf(ctx), Details: clean})
	if err != nil {
		return &fault.Error{Code: fault.Internal, Op: "gateway.record", Err: err,
			Msg: "this could not be put into the audit ledger, and so was not done"}
	}
	return nil
}

// audited records what is about to be done, does it, and records that it failed where it did.
func (s *server) audited(c *gin.Context, kind string, details map[string]any, do func() error) error {
	if err := s.record(c, kind, details); err != nil {
		return err
	}
	err := do()
	if err != nil {
		failed := map[string]any{"failed": fault.CodeOf(err).String()}
		for name, v := range details {
			failed[name] = v
		}
		if late := s.record(c, kind, failed); late != nil {
			s.cfg.Log.Error("a failure is not in the audit ledger", "request_id", requestIDOf(c), "error", logged(late))
		}
	}
	return err
}

// maxAuditText bounds one text of an entry, in bytes. What is longer is cut, and ends with the length and hash of the whole.
const maxAuditText = 4 << 10

// Secrets that people put where none belong: keys of ours, and passwords in addresses.
var (
	keyForm      = regexp.MustCompile(`sl[ct]_[A-Za-z0-9_-]{8,}`)
	userinfoForm = regexp.MustCompile(`://[^/\s@'"]*@`)
)

// traceKey is where a request's context keeps what its entries need.
type traceKey struct{}

// trace is of one request. It is complete before the route's handler begins.
type trace struct {
	requestID string
	who       access.Principal
	bearer    string // which no entry may hold
}

// beginTrace lets what the request starts know whose it is, in other rooms too.
func beginTrace(c *gin.Context, requestID string) {
	t := &trace{requestID: requestID}
	t.bearer, _ = bearerOf(c.Request.Header)
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), traceKey{}, t))
}

func traceOf(ctx context.Context) *trace {
	if t, ok := ctx.Value(traceKey{}).(*trace); ok {
		return t
	}
	return &trace{}
}

// RequestIDOf is the id, as it may stand in the ledger, of the request that a context belongs to; "" when it belongs to none.
func RequestIDOf(ctx context.Context) string {
	t := traceOf(ctx)
	return presentableText(t.requestID, t.bearer)
}

// CallerOf is who makes the request that a context belongs to.
func CallerOf(ctx context.Context) access.Principal { return traceOf(ctx).who }

// Presentable is a value as it may stand in the ledger: texts without secrets and not too long.
func Presentable(ctx context.Context, v any) any {
	secret := traceOf(ctx).bearer
	switch v := v.(type) {
	case string:
		return presentableText(v, secret)
	case []string:
		if v == nil {
			return nil
		}
		out := make([]any, 0, min(len(v), maxAuditList))
		for i, text := range v {
			if i == maxAuditList {
				out = append(out, "…")
				break
			}
			out = append(out, cutText(presentableText(text, secret), 100))
		}
		return out
	}
	return v
}

// maxAuditList bounds a list of names in an entry.
const maxAuditList = 20

func presentableText(text, secret string) string {
	if len(secret) >= 8 { // a placeholder such as "ollama" is no secret
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	text = keyForm.ReplaceAllString(text, "[secret]")
	text = userinfoForm.ReplaceAllString(text, "://[secret]@")
	if len(text) > maxAuditText {
		return fmt.Sprintf("%s (%d bytes, SHA-256 %x)", cutText(text, maxAuditText), len(text), sha256.Sum256([]byte(text)))
	}
	return text
}

func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
