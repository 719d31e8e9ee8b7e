package gatefuzz

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Case is a line of a case file of the gate.
type Case struct {
	ID, SQL, Dialect, Profile, Verdict, Why string
	Grants                                  []string // nil: every table may be read
}

// Cases reads the case files of a folder.
func Cases(t testing.TB, folder string) []Case {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal("no case files", err)
	}
	var out []Case
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Buffer(nil, 4<<20)
		for s.Scan() {
			var c Case
			if err := json.Unmarshal(s.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			out = append(out, c)
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
	}
	return out
}

// Mutator changes statements with the parts of others.
type Mutator struct{ texts, words []string }

// NewMutator takes its material from the texts; very long ones are left out.
func NewMutator(texts ...string) *Mutator {
	m := &Mutator{}
	for _, sql := range texts {
		if len(sql) < 2000 {
			m.texts = append(m.texts, sql)
			m.words = append(m.words, pieces.FindAllString(sql, -1)...)
		}
	}
	return m
}

var pieces = regexp.MustCompile(`'[^']*'|"[^"]*"|\$\$[^$]*\$\$|[\pL\d_]+|\s+|::|.`)

// Next takes one of the texts and exchanges, inserts, drops, doubles, quotes, re-cases or comments some of its parts, or
// joins it to the tail of another.
func (m *Mutator) Next(rnd *rand.Rand) string {
	parts := pieces.FindAllString(m.texts[rnd.IntN(len(m.texts))], -1)
	for range 1 + rnd.IntN(3) {
		if len(parts) == 0 {
			break
		}
		i := rnd.IntN(len(parts))
		word := m.words[rnd.IntN(len(m.words))]
		switch rnd.IntN(12) {
		case 0, 1, 2:
			if j := sameKind(rnd, parts[i], m.words); j >= 0 { // an identifier for an identifier, a symbol for a symbol
				word = m.words[j]
			}
			parts[i] = word
		case 3:
			parts = slices.Insert(parts, i, word, " ")
		case 4:
			parts = slices.Delete(parts, i, i+1)
		case 5:
			parts[i] = `"` + parts[i] + `"`
		case 6:
			j := i + rnd.IntN(len(parts)-i)
			parts = slices.Insert(parts, j, parts[i:j]...)
		case 7:
			parts[i] = upDown(rnd, parts[i])
		case 8:
			parts = slices.Insert(parts, i, []string{"/* x */", "--\n", "/**/", "/*/**/*/"}[rnd.IntN(4)])
		case 9:
			other := pieces.FindAllString(m.texts[rnd.IntN(len(m.texts))], -1)
			parts = slices.Concat(parts[:i], other[rnd.IntN(len(other)+1):])
		case 10:
			j := rnd.IntN(len(parts))
			parts[i], parts[j] = parts[j], parts[i]
		case 11:
			parts[i] = strings.NewReplacer("'", "$$", `"`, "").Replace(parts[i])
		}
	}
	return strings.Join(parts, "")
}

// sameKind looks for a word that begins like the part: a letter, a digit, a quote, or the same character.
func sameKind(rnd *rand.Rand, part string, words []string) int {
	for range 20 {
		if j := rnd.IntN(len(words)); kindOf(words[j]) == kindOf(part) {
			return j
		}
	}
	return -1
}

func kindOf(s string) byte {
	switch c := s[0]; {
	case c >= '0' && c <= '9':
		return '0'
	case c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80:
		return 'a'
	case strings.IndexByte("+-*/<>=~!@#%^&|`?", c) >= 0:
		return '+'
	default:
		return c
	}
}

func upDown(rnd *rand.Rand, s string) string {
	if rnd.IntN(2) == 0 {
		return strings.ToUpper(s)
	}
	return strings.ToLower(s)
}
