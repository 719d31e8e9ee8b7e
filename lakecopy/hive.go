package lakecopy

import (
	"strings"
)

// nullMarker is the folder value that Hive, Spark and DuckDB read as NULL.
const nullMarker = "__HIVE_DEFAULT_PARTITION__"

// maxSegment is the longest folder name, in bytes, that common file systems take.
const maxSegment = 255

// hiveName gives the folder name of a partition value: key=value with Hive's escapes, or the marker for NULL.
//
// A text that readers would take for NULL (the marker itself, or NULL, in any case) has its first byte escaped: DuckDB
// 1.5 then reads the text back, while unescaped it loses rows (duckdb 24308, 24309). The empty text stays empty, so that
// it differs from NULL.
func hiveName(key string, value *string) string {
	if value == nil {
		return escape(key, false) + "=" + nullMarker
	}
	return escape(key, false) + "=" + escape(*value, readsAsNull(*value))
}

func readsAsNull(raw string) bool {
	return strings.EqualFold(raw, nullMarker) || strings.EqualFold(raw, "NULL")
}

// escape is Hive's escaping: %XX for control characters and the characters that mean something in paths, URLs or glob
// patterns. UTF-8 stays raw, since Hive and Spark decode byte by byte.
func escape(text string, first bool) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c < 0x20 || c == 0x7f || strings.IndexByte(`"#%'*/:=?\{}[]^`, c) >= 0 || first && i == 0 {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// hiveValue reads a folder name back. ok is false for a folder that is no partition. What follows % and is not two hex
// digits stays as it is, as readers do.
func hiveValue(name string) (key string, value *string, ok bool) {
	rawKey, raw, ok := strings.Cut(name, "=")
	if !ok || rawKey == "" {
		return "", nil, false
	}
	if readsAsNull(raw) {
		return unescape(rawKey), nil, true
	}
	text := unescape(raw)
	return unescape(rawKey), &text, true
}

func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			high, low := digit(text[i+1]), digit(text[i+2])
			if high >= 0 && low >= 0 {
				b.WriteByte(byte(high<<4 | low))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// hidden says whether readers of a lake skip a file or folder of this name.
func hidden(name string) bool { return name[0] == '_' || name[0] == '.' }

// isData says whether a file name is that of a data file.
func isData(name string) bool {
	return !hidden(name) && strings.HasSuffix(strings.ToLower(name), ".parquet")
}
