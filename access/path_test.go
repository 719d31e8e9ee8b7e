package access

import (
	"errors"
	"strings"
	"testing"

	"sluice/fault"
)

func TestPath(t *testing.T) {
	for sentence, row := range map[string]struct{ raw, want string }{
		"one segment":                {"t", "t"},
		"several":                    {"exports/2024/orders", "exports/2024/orders"},
		"a trailing slash goes":      {"t/x/", "t/x"},
		"a partition folder":         {"t/region=eu", "t/region=eu"},
		"letters of any language":    {"größe/年", "größe/年"},
		"an encoded blank is a name": {"t/a%20b", "t/a%20b"},
		"dots inside a name":         {"v1.2/a..b", "v1.2/a..b"},
		"a blank inside a name":      {"my files/x", "my files/x"},
		"a segment of 255 bytes":     {strings.Repeat("x", 255), strings.Repeat("x", 255)},
	} {
		if got, err := Path(row.raw); err != nil || got != row.want {
			t.Errorf("%s: Path(%q) = %q, %v", sentence, row.raw, got, err)
		}
	}
	for sentence, raw := range map[string]string{
		"empty": "", "only a slash": "/", "absolute": "/etc/out", "climbs out": "../out", "climbs in the middle": "a/../../out",
		"climbs at the end": "a/..", "dot": "./a", "a URL": "s3://other/b", "a file URL": "file:///etc", "a scheme alone": "s3:b",
		"a drive": "C:/x", "encoded dots": "%2e%2e/x", "encoded dots in capitals": "a/%2E%2E/b", "an encoded slash": "a%2Fb",
		"an encoded backslash": "a%5cb", "an encoded NUL": "a%00b", "a backslash": `a\b`, "a NUL": "a\x00b", "a newline": "a\nb",
		"DEL": "a\x7fb", "not UTF-8": "a\xffb", "the server's own folder": ".sluice/stage", "the same in capitals": "a/.SLUICE",
		"hidden": ".git/x", "hidden below": "a/_tmp", "an empty segment": "a//b", "a blank name": "a/ /b", "a trailing blank": "a /b",
		"a segment of 256 bytes": "a/" + strings.Repeat("x", 256), "too long": strings.Repeat("abcdefg/", 200),
		"a star": "a/*", "a question mark": "a?", "a bracket": "[x]", "a brace": "{a,b}", "C1 control": "a\u0085b",
	} {
		got, err := Path(raw)
		var e *fault.Error
		if got != "" || !errors.As(err, &e) || e.Code != fault.Invalid || e.Kind != "path" {
			t.Errorf("%s: Path(%q) = %q, %v", sentence, raw, got, err)
		}
	}
}

func TestCovers(t *testing.T) {
	for sentence, row := range map[string]struct {
		pattern, path string
		want          bool
	}{
		"a folder covers itself":             {"a", "a", true},
		"and what is below":                  {"a", "a/b/c", true},
		"with a slash":                       {"a/", "a/b", true},
		"with a star":                        {"a/*", "a", true},
		"by segment":                         {"a", "ab", false},
		"by segment, with a star":            {"a/*", "ab/c", false},
		"not the parent":                     {"a/b", "a", false},
		"the root covers every child":        {"/", "a/b", true},
		"the root with a star":               {"/*", "a", true},
		"the root does not cover the root":   {"/", "", false},
		"the root does not cover .sluice":    {"/", ".sluice/stage", false},
		"the empty pattern covers nothing":   {"", "a", false},
		"a lone star covers nothing":         {"*", "a", false},
		"a climbing pattern covers nothing":  {"a/../b", "b", false},
		"an absolute pattern covers nothing": {"/a", "a", false},
		"case matters":                       {"A", "a", false},
		"a path that is not clean":           {"a", "a/", false},
		"a path that climbs":                 {"a", "a/../b", false},
	} {
		if got := Covers(row.pattern, row.path); got != row.want {
			t.Errorf("%s: Covers(%q, %q) = %v", sentence, row.pattern, row.path, got)
		}
	}
}

func TestOverlaps(t *testing.T) {
	for sentence, row := range map[string]struct {
		managed, path string
		want          bool
	}{
		"the folder itself":      {"tables/", "tables", true},
		"below":                  {"tables", "tables/x", true},
		"an ancestor":            {"a/b/c", "a", true},
		"a sibling":              {"a/b", "a/c", false},
		"a longer name":          {"tables", "tables2", false},
		"an unreadable setting":  {"../tables", "x", true},
		"the root as managed":    {"/", "x", true},
		"with a star":            {"tables/*", "tables/x", true},
		"a path nobody accepted": {"tables", "x/../y", true},
	} {
		if got := Overlaps(row.managed, row.path); got != row.want {
			t.Errorf("%s: Overlaps(%q, %q) = %v", sentence, row.managed, row.path, got)
		}
	}
}
