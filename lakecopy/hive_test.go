package lakecopy

import (
	"strings"
	"testing"
	"testing/quick"
)

func TestHiveNames(t *testing.T) {
	text := func(s string) *string { return &s }
	for sentence, row := range map[string]struct {
		key   string
		value *string
		want  string
	}{
		"a plain value":              {"region", text("eu"), "region=eu"},
		"NULL is the marker":         {"p", nil, "p=__HIVE_DEFAULT_PARTITION__"},
		"the empty text is empty":    {"p", text(""), "p="},
		"the marker as a text":       {"p", text("__HIVE_DEFAULT_PARTITION__"), "p=%5F_HIVE_DEFAULT_PARTITION__"},
		"the marker in other case":   {"p", text("__hive_default_partition__"), "p=%5F_hive_default_partition__"},
		"NULL as a text":             {"p", text("NULL"), "p=%4EULL"},
		"null as a text":             {"p", text("null"), "p=%6Eull"},
		"a text that begins so":      {"p", text("NULLS"), "p=NULLS"},
		"a slash":                    {"p", text("a/b"), "p=a%2Fb"},
		"an escape in the data":      {"p", text("a%2Fb"), "p=a%252Fb"},
		"dots are no path":           {"p", text("../../etc"), "p=..%2F..%2Fetc"},
		"blanks and plus stay":       {"p", text("a b+c"), "p=a b+c"},
		"letters stay as they are":   {"p", text("größe"), "p=größe"},
		"control characters and DEL": {"p", text("\x01\n\x7f"), "p=%01%0A%7F"},
		"what means something":       {"p", text(`"#%'*/:=?\{}[]^`), "p=%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%7D%5B%5D%5E"},
		"a key with an equals sign":  {"a=b", text("x"), "a%3Db=x"},
		"a colon in an instant":      {"t", text("2023-12-31 23:00:00+00"), "t=2023-12-31 23%3A00%3A00+00"},
	} {
		if got := hiveName(row.key, row.value); got != row.want {
			t.Errorf("%s: %q, want %q", sentence, got, row.want)
		}
		key, value, ok := hiveValue(row.want)
		if !ok || key != row.key || (value == nil) != (row.value == nil) || value != nil && *value != *row.value {
			t.Errorf("%s: %q reads back as %q, %v", sentence, row.want, key, value)
		}
	}
	for _, name := range []string{"region", "=eu", ""} {
		if _, _, ok := hiveValue(name); ok {
			t.Errorf("%q is a partition", name)
		}
	}
	if _, value, _ := hiveValue("p=100%"); value == nil || *value != "100%" {
		t.Error("a lone percent sign is not kept")
	}
}

// Whatever the value, its folder is one path segment of no other meaning, reads back as it was, and is unlike NULL's.
func TestHiveRoundTrip(t *testing.T) {
	property := func(key, value string) bool {
		if key == "" {
			return true
		}
		name := hiveName(key, &value)
		backKey, back, ok := hiveValue(name)
		return ok && backKey == key && back != nil && *back == value && !strings.ContainsAny(name, "/*?[\x00") && name != hiveName(key, nil)
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
}

func FuzzHiveNames(f *testing.F) {
	for _, seed := range []string{"", "NULL", "a/b", "%", "..", nullMarker, "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		_, back, ok := hiveValue(hiveName("p", &value))
		if !ok || back == nil || *back != value {
			t.Errorf("%q reads back as %v", value, back)
		}
	})
}
