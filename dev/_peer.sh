# Sourced: builds the peer of the benchmarks, Ollama itself, into the cache, unless it is there; the caller has sourced _lib.sh.
mkdir -p "$cache/peer/src"

# The peer: the program of the very module that go.mod pins, with our flags, so that its llama.cpp is the one that we have compiled already.
# It needs modules that we do not, hence a module of its own outside the tree.
version=$(go list -m -f '{{.Version}}' github.com/ollama/ollama)
flags="-I$cache/include -DGGML_USE_CPU_REPACK"
built="$version $flags -O3 -march=native $(go env GOVERSION)"
if [ "$(cat "$cache/peer/built" 2>/dev/null)" != "$built" ] || [ ! -x "$cache/peer/ollama" ]; then
  printf 'module peer\n\ngo %s\n\nrequire github.com/ollama/ollama %s\n' "$(go list -m -f '{{.GoVersion}}')" "$version" >"$cache/peer/src/go.mod"
  printf '//go:build tools\n\npackage peer\n\nimport _ "github.com/ollama/ollama"\n' >"$cache/peer/src/tools.go"
  rm -f "$cache/peer/src/go.sum"
  (
    cd "$cache/peer/src"
    export GOFLAGS=-mod=mod CGO_CPPFLAGS=$flags CGO_CFLAGS="-O3 -march=native" CGO_CXXFLAGS="-O3 -march=native"
    slowly "building the peer, Ollama $version (the rest of its module; some minutes the first time)" \
      go build -o ../ollama github.com/ollama/ollama
  )
  printf '%s' "$built" >"$cache/peer/built"
fi
