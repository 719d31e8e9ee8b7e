package gateway

import (
	"context"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"
	"testing"

	"sluice/access"
	"sluice/fault"
	"sluice/rag/collection"
)

// wordVectors embeds by words, so that texts that share some are near.
type wordVectors struct{}

func (wordVectors) Digest(context.Context, string) (string, error) { return "d1", nil }

func (wordVectors) Count(context.Context, string, []string) ([]int, error) {
	return nil, fault.New(fault.Unimplemented, "test", "no tokenizer")
}

func (wordVectors) Embed(_ context.Context, _ string, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = make([]float32, 32)
		out[i][0] = 0.1
		for w := range strings.FieldsSeq(strings.ToLower(t)) {
			f := fnv.New32a()
			fmt.Fprint(f, w)
			out[i][f.Sum32()%32]++
		}
	}
	return out, nil
}

// withDocuments is withShop with a real embedded store of documents.
func withDocuments(t testing.TB) *fixture {
	t.Helper()
	store, err := collection.OpenEmbedded(context.Background(), filepath.Join(t.TempDir(), "rag.duckdb"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	svc, err := collection.New(collection.Config{Store: store, Embedder: wordVectors{}, Model: "encoder"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = svc.Close() })
	shop := withShop(t)
	f := newFixture(t, func(c *Config) {
		*c = shop.cfg
		c.Collections = svc
	})
	return f
}

func TestAnswersOfDocumentsFitTheDocument(t *testing.T) {
	f := withDocuments(t)
	f.user(t, "bob", access.ReadWrite)
	bob := f.login(t, "bob")
	x := newFits(f)
	const at = "/v1/rag/collections"
	x.post(at, writerKey, m{"name": "manuals", "description": "how the machines run"}, 200)
	x.post(at, writerKey, m{"name": "manuals"}, 409)
	x.post(at, writerKey, m{"name": "No Name"}, 400)
	x.post(at, writerKey, m{"name": "x", "database": "none"}, 404)
	x.post(at, readOnlyKey, m{"name": "x"}, 403)
	x.post(at, "", m{"name": "x"}, 401)
	x.post(at, adminKey, m{"name": "terms", "database": "shop"}, 200)
	docs := at + "/manuals/documents"
	x.post(docs, writerKey, m{"id": "pump", "text": "# Pump\n\nRinse the filter every week.", "metadata": m{"lang": "en", "year": 2024}}, 200)
	x.post(docs, writerKey, m{"id": "pump", "text": "# Pump\n\nRinse the filter every week.", "metadata": m{"lang": "en", "year": 2025}}, 200)
	x.post(docs, writerKey, m{"id": "saw", "source": "saw.txt", "format": "text", "text": "Oil the saw."}, 200)
	x.post(docs, writerKey, m{"text": ""}, 400)
	x.post(docs, writerKey, m{"text": strings.Repeat("a ", 3<<20)}, 413)
	x.post(docs, writerKey, m{"text": "x", "metadata": m{"a": []int{1}}}, 400)
	x.post(docs, bob, m{"text": "x"}, 404)
	x.post(docs, readOnlyKey, m{"text": "x"}, 403)
	x.post(docs, agentKey, m{"text": "x"}, 403)
	x.get(docs, writerKey, 200)
	x.get(docs+"?limit=0", writerKey, 400)
	w := x.get(docs+"?limit=1", writerKey, 200)
	if got := object(t, w.Body.Bytes()); got["meta"].(map[string]any)["next_cursor"] != "pump" {
		t.Errorf("%s", w.Body)
	}
	if w := x.get(docs+"?limit=1&cursor=pump", writerKey, 200); !strings.Contains(w.Body.String(), `"saw"`) || strings.Contains(w.Body.String(), `"pump"`) {
		t.Errorf("%s", w.Body)
	}
	if w := x.get(docs+"/pump", writerKey, 200); !strings.Contains(w.Body.String(), "Rinse") {
		t.Errorf("%s", w.Body)
	}
	x.get(docs+"/none", writerKey, 404)
	x.get(at, writerKey, 200)
	x.get(at+"/manuals", writerKey, 200)
	x.get(at+"/none", writerKey, 404)
	w = x.post("/v1/rag/search", writerKey, m{"query": "clean the filter", "collections": []string{"manuals"}, "filter": m{"year": 2025}, "limit": 3}, 200)
	if text := w.Body.String(); !strings.Contains(text, `"document":"pump"`) || strings.Contains(text, `"document":"saw"`) {
		t.Errorf("%s", text)
	}
	x.post("/v1/rag/search", writerKey, m{"query": ""}, 400)
	x.post("/v1/rag/search", writerKey, m{"query": "x", "limit": 99}, 400)
	x.post("/v1/rag/search", bob, m{"query": "x", "collections": []string{"manuals"}}, 404)
	x.post("/v1/rag/search", agentKey, m{"query": "filter", "collections": []string{"manuals"}}, 200)
	x.post("/v1/rag/search", "", m{"query": "x"}, 401)
	x.do(call{method: "DELETE", path: docs + "/saw", bearer: writerKey}, 200)
	x.do(call{method: "DELETE", path: docs + "/saw", bearer: writerKey}, 404)
	x.do(call{method: "DELETE", path: at + "/manuals", bearer: bob}, 404)
	x.do(call{method: "DELETE", path: at + "/manuals", bearer: writerKey}, 200)
	x.mustHaveSeen("/v1/rag/")
}

// A grant is for a collection that is there, and goes with it; a deleted user's collections are nobody's.
func TestGrantsOnCollections(t *testing.T) {
	f := withDocuments(t)
	const at = "/v1/rag/collections/manuals"
	f.user(t, "ann", access.ReadWrite)
	f.user(t, "bob", access.ReadWrite)
	ann, bob := f.login(t, "ann"), f.login(t, "bob")
	read := m{"principal": "bob", "kind": "collection", "name": "manuals", "access": "read"}
	failure(t, f.json("POST", "/v1/grants", adminKey, read), 400, "invalid")
	wantStatus(t, f.json("POST", "/v1/rag/collections", ann, m{"name": "manuals"}), 200)
	failure(t, f.json("GET", at, bob, nil), 404, "not_found")
	f.give(t, read)
	if got := data[m](t, f.json("GET", at, bob, nil)); got["access"] != "read" || got["owner"] != "ann" {
		t.Errorf("%v", got)
	}
	failure(t, f.json("POST", at+"/documents", bob, m{"text": "x"}), 403, "denied")
	failure(t, f.json("POST", "/v1/rag/collections", readOnlyKey, m{"name": "more"}), 403, "denied") // and leaves nothing in the ledger
	if got := data[m](t, f.json("POST", at+"/documents", ann, m{"text": "x"})); got["result"] != "added" || got["added_by"] != "ann" {
		t.Errorf("%v", got)
	}
	wantStatus(t, f.json("DELETE", at, ann, nil), 200)
	wantStatus(t, f.json("POST", "/v1/rag/collections", ann, m{"name": "manuals"}), 200)
	failure(t, f.json("GET", at, bob, nil), 404, "not_found")
	if got := strings.Join(f.kinds("collection."), " ") + " " + strings.Join(f.kinds("document."), " "); got != "collection.create collection.delete collection.create document.put" {
		t.Errorf("the ledger has %q", got)
	}

	wantStatus(t, f.json("DELETE", "/v1/users/ann", adminKey, nil), 200)
	f.user(t, "ann", access.ReadWrite)
	failure(t, f.json("GET", at, f.login(t, "ann"), nil), 404, "not_found")
	wantStatus(t, f.json("GET", at, adminKey, nil), 200)
}
