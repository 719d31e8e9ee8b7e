package registrytest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollama/ollama/types/model"
)

const mediaManifest = "application/vnd.docker.distribution.manifest.v2+json"

// Seed puts a model of a models folder (Ollama's layout) into the registry as NAMESPACE/MODEL:TAG; "" takes its own name.
// It goes straight to the registry: no fault happens to it and nothing is counted.
func (r *Registry) Seed(dir, name, as string) error {
	from := model.ParseName(name)
	to := from
	if as != "" {
		to = model.ParseName(as)
	}
	if !from.IsValid() || !to.IsValid() {
		return fmt.Errorf("registrytest: %q or %q is not a model's name", name, as)
	}
	data, err := os.ReadFile(filepath.Join(dir, "manifests", from.Filepath()))
	if err != nil {
		return fmt.Errorf("registrytest: %w", err)
	}
	var mf struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	if err := json.Unmarshal(data, &mf); err != nil {
		return fmt.Errorf("registrytest: %w", err)
	}
	for _, l := range append(mf.Layers, mf.Config) {
		f, err := os.Open(filepath.Join(dir, "blobs", strings.Replace(l.Digest, ":", "-", 1)))
		if err != nil {
			return fmt.Errorf("registrytest: %w", err)
		}
		err = r.PutBlob(to.DisplayNamespaceModel(), l.Digest, f)
		_ = f.Close()
		if err != nil {
			return err
		}
	}
	return r.PutManifest(to.DisplayNamespaceModel(), to.Tag, data)
}

// AddBlob puts bytes as a blob and gives their digest.
func (r *Registry) AddBlob(repository string, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	return digest, r.PutBlob(repository, digest, bytes.NewReader(data))
}

// PutBlob puts a blob.
func (r *Registry) PutBlob(repository, digest string, body io.Reader) error {
	begun := r.direct(http.MethodPost, "/v2/"+repository+"/blobs/uploads/", "", nil)
	where, err := url.Parse(begun.Header().Get("Location"))
	if err != nil || begun.Code != http.StatusAccepted {
		return fmt.Errorf("registrytest: an upload was not begun: %d", begun.Code)
	}
	query := where.Query()
	query.Set("digest", digest)
	where.RawQuery = query.Encode()
	if done := r.direct(http.MethodPut, where.RequestURI(), "application/octet-stream", body); done.Code != http.StatusCreated {
		return fmt.Errorf("registrytest: a blob was not taken: %d %s", done.Code, done.Body)
	}
	return nil
}

// PutManifest puts a manifest.
func (r *Registry) PutManifest(repository, tag string, data []byte) error {
	done := r.direct(http.MethodPut, "/v2/"+repository+"/manifests/"+tag, mediaManifest, bytes.NewReader(data))
	if done.Code != http.StatusCreated {
		return fmt.Errorf("registrytest: a manifest was not taken: %d %s", done.Code, done.Body)
	}
	return nil
}

// Manifest gives a manifest's bytes as the registry has them.
func (r *Registry) Manifest(repository, tag string) ([]byte, error) {
	got := r.direct(http.MethodGet, "/v2/"+repository+"/manifests/"+tag, "", nil)
	if got.Code != http.StatusOK {
		return nil, fmt.Errorf("registrytest: no manifest: %d", got.Code)
	}
	return got.Body.Bytes(), nil
}

func (r *Registry) direct(method, path, contentType string, body io.Reader) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, path, body)
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
	q.Header.Set("Accept", mediaManifest)
	w := httptest.NewRecorder()
	r.app.ServeHTTP(w, q)
	return w
}
