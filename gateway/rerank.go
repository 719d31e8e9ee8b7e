package gateway

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"sluice/fault"
	"sluice/runner"
	"sluice/scheduler"
)

// rerankRequest is the one that Jina, Cohere, llama.cpp and vLLM have in common.
type rerankRequest struct {
	nameField
	Query           string           `json:"query"`
	Documents       []rerankDocument `json:"documents"`
	TopN            *int             `json:"top_n"` // null: all
	ReturnDocuments bool             `json:"return_documents"`

	KeepAlive *keepAlive     `json:"keep_alive"`
	Options   map[string]any `json:"options"`
	Truncate  *bool          `json:"truncate"`
}

// rerankDocument is a text, or an object with one.
type rerankDocument struct {
	Text string `json:"text"`
}

// UnmarshalJSON reads either form.
func (d *rerankDocument) UnmarshalJSON(b []byte) error {
	var text *string
	if json.Unmarshal(b, &text) == nil && text != nil {
		d.Text = *text
		return nil
	}
	var object struct {
		Text *string `json:"text"`
	}
	if json.Unmarshal(b, &object) != nil || object.Text == nil {
		return fmt.Errorf(`documents must be texts, or objects of the form {"text": "…"}`)
	}
	d.Text = *object.Text
	return nil
}

// maxDocuments bounds how long one request holds its model.
const maxDocuments = 2048

type rerankResponse struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Model   string         `json:"model"`
	Method  string         `json:"method"`  // how the scores were made: reranker or cosine
	Results []rerankResult `json:"results"` // best first
	Usage   rerankUsage    `json:"usage"`
}

type rerankResult struct {
	Index          int             `json:"index"` // of the document in the request
	RelevanceScore float64         `json:"relevance_score"`
	Document       *rerankDocument `json:"document,omitempty"`
}

type rerankUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// rerank is POST /v1/rerank and /api/rerank: how well documents answer a query, best first. A reranker reads query and document together;
// its score is the sigmoid of its logit, in 0..1. An embedding model reads each alone; the score is the cosine of their
// vectors, in -1..1: an order, not a probability. The response's method says which it was.
func (s *server) rerank(c *gin.Context) {
	var req rerankRequest
	err := decode(c, &req)
	if err == nil {
		err = req.check()
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	out := rerankResponse{ID: newID("rerank-"), Object: "list", Model: req.name(), Results: make([]rerankResult, len(req.Documents))}
	scores, method, tokens, err := s.scores(c, &req)
	if err != nil {
		s.fail(c, err)
		return
	}
	out.Method, out.Usage = method, rerankUsage{PromptTokens: tokens, TotalTokens: tokens}
	for i, score := range scores {
		out.Results[i] = rerankResult{Index: i, RelevanceScore: score}
		if req.ReturnDocuments {
			out.Results[i].Document = &req.Documents[i]
		}
	}
	slices.SortStableFunc(out.Results, func(a, b rerankResult) int {
		switch {
		case a.RelevanceScore > b.RelevanceScore:
			return -1
		case a.RelevanceScore < b.RelevanceScore:
			return 1
		}
		return 0
	})
	if req.TopN != nil {
		out.Results = out.Results[:min(*req.TopN, len(out.Results))]
	}
	writeJSON(c, http.StatusOK, out)
}

func (r *rerankRequest) check() error {
	switch {
	case r.Query == "":
		return invalid("query is missing")
	case len(r.Documents) == 0:
		return invalid("documents must not be empty")
	case len(r.Documents) > maxDocuments:
		return invalid("%d documents: at most %d go into one request", len(r.Documents), maxDocuments)
	case r.TopN != nil && *r.TopN < 1:
		return invalid("top_n must be at least 1")
	}
	return nil
}

// scores asks the model, in the way that it can answer.
func (s *server) scores(c *gin.Context, r *rerankRequest) (scores []float64, method string, tokens int, err error) {
	m, err := s.model(c, r.name())
	if err != nil {
		return nil, "", 0, err
	}
	// A chat model's embeddings say little of what answers what.
	if can(m, "completion") {
		return nil, "", 0, &fault.Error{Code: fault.Invalid, Op: "gateway.rerank", Msg: fmt.Sprintf("%q does not support reranking", printable(r.name(), 200)),
			Hint: "use a reranker, or an embedding model, whose vectors are compared"}
	}
	lease, _, err := s.lease(c, m, r.Options, r.KeepAlive, nil)
	if err != nil {
		return nil, "", 0, err
	}
	defer lease.Release()
	if method = "cosine"; lease.Report().Reranks {
		method = "reranker"
		scores, tokens, err = s.logits(c, lease, r)
	} else {
		scores, tokens, err = s.cosines(c, lease, r)
	}
	s.meters.read(m.Name, tokens)
	return scores, method, tokens, err
}

func (r *rerankRequest) truncates() bool { return r.Truncate == nil || *r.Truncate }

func (r *rerankRequest) texts() []string {
	texts := make([]string, len(r.Documents))
	for i, d := range r.Documents {
		texts[i] = d.Text
	}
	return texts
}

// logits are a reranker's scores.
func (s *server) logits(c *gin.Context, lease *scheduler.Lease, r *rerankRequest) ([]float64, int, error) {
	res, err := lease.Rerank(c.Request.Context(), runner.RerankRequest{Query: r.Query, Documents: r.texts(), Truncate: r.truncates()})
	if err != nil {
		return nil, 0, err
	}
	if len(res.Scores) != len(r.Documents) {
		return nil, 0, fault.Bug("%d scores for %d documents", len(res.Scores), len(r.Documents))
	}
	if res.Truncated {
		c.Header(truncatedHeader, "cut")
	}
	out := make([]float64, len(res.Scores))
	for i, logit := range res.Scores {
		if out[i] = 1 / (1 + math.Exp(-float64(logit))); math.IsNaN(out[i]) {
			return nil, 0, invalid("the model gives no usable score for document %d: change or leave out that text", i)
		}
	}
	return out, res.PromptTokens, nil
}

// cosines compare the query's vector with the documents'. A document without words is like nothing.
func (s *server) cosines(c *gin.Context, lease *scheduler.Lease, r *rerankRequest) ([]float64, int, error) {
	texts := append([]string{r.Query}, r.texts()...)
	res, err := lease.Embed(c.Request.Context(), runner.EmbedRequest{Inputs: texts, Truncate: r.truncates()})
	if err != nil {
		return nil, 0, err
	}
	if len(res.Vectors) != len(texts) {
		return nil, 0, fault.Bug("%d vectors for %d texts", len(res.Vectors), len(texts))
	}
	if res.Truncated {
		c.Header(truncatedHeader, "cut")
	}
	query := unit(res.Vectors[0])
	out := make([]float64, len(r.Documents))
	for i := range out {
		v := unit(res.Vectors[i+1])
		if len(v) != len(query) {
			return nil, 0, fault.Bug("vectors of %d and %d numbers", len(query), len(v))
		}
		for j, x := range v {
			out[i] += float64(x) * float64(query[j])
		}
		if math.IsNaN(out[i]) {
			return nil, 0, invalid("the model gives no usable vector for the query or document %d: change or leave out that text", i)
		}
	}
	return out, res.PromptTokens, nil
}
