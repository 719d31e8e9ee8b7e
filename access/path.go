package access

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice/fault"
)

const (
	maxSegment = 255  // bytes: the limit of a file name on every common file system
	maxPath    = 1024 // bytes: the limit of an object's key on S3
)

var (
	scheme  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
	encoded = regexp.MustCompile(`(?i)%(2e|2f|5c|00)`)
)

// Path checks a path below a lake's root as a person wrote it and returns it without trailing slashes. Whatever could
// mean another place than it says is refused with code Invalid and Kind "path": it is never repaired, because what was
// checked must be what is used.
func Path(raw string) (string, error) {
	clean := strings.TrimRight(raw, "/")
	switch {
	case raw == "":
		return "", badPath("the path is empty")
	case strings.HasPrefix(raw, "/"):
		return "", badPath("the path must be relative to the connection's root, not absolute")
	case scheme.MatchString(raw):
		return "", badPath("the path must be a folder below the connection's root, not a URL")
	case !utf8.ValidString(raw) || strings.ContainsFunc(raw, unicode.IsControl):
		return "", badPath("the path holds a control character or is not UTF-8")
	case strings.Contains(raw, `\`):
		return "", badPath("the path holds a backslash")
	case encoded.MatchString(raw):
		return "", badPath("the path holds an encoded dot, slash, backslash or NUL")
	case strings.ContainsAny(raw, "*?[]{}"):
		// An engine that is given the name of a file takes these for a pattern and would open other files.
		return "", badPath("the path holds a pattern character: none of * ? [ ] { } may be in it")
	case len(clean) > maxPath:
		return "", badPath("the path is too long")
	}
	for segment := range strings.SplitSeq(clean, "/") {
		switch {
		case segment == "":
			return "", badPath("the path has an empty segment")
		case segment == "." || segment == "..":
			return "", badPath("the path may not hold . or .. as a segment")
		case strings.EqualFold(segment, ".sluice"):
			return "", badPath("the folder .sluice belongs to the server")
		case segment[0] == '.' || segment[0] == '_':
			return "", badPath("a segment may not begin with . or _: readers of a lake take such folders for hidden")
		case strings.TrimSpace(segment) != segment:
			return "", badPath("a segment may not begin or end with a space")
		case len(segment) > maxSegment:
			return "", badPath("a segment of the path is longer than 255 bytes")
		}
	}
	return clean, nil
}

func badPath(why string) error {
	return &fault.Error{Code: fault.Invalid, Op: "access.Path", Kind: "path", Msg: why}
}

// Covers says whether a folder of a list (write_allowlist and its like) covers a path that Path accepted: by segment,
// so that "a" covers "a" and "a/b" but not "ab". "a", "a/" and "a/*" mean the same, "/" every child of the root. A
// pattern that is no path, such as "", "*" or "a/../b", covers nothing.
func Covers(pattern, path string) bool {
	if clean, err := Path(path); err != nil || clean != path {
		return false
	}
	if pattern == "/" || pattern == "/*" {
		return true
	}
	folder, err := Path(strings.TrimSuffix(pattern, "/*"))
	return err == nil && (path == folder || strings.HasPrefix(path, folder+"/"))
}

// Overlaps says whether one of two folders lies in the other or is it: writing to the one would then touch the other.
// A folder or path that Path does not accept overlaps with everything, so that a slip in the settings opens nothing.
func Overlaps(managed, path string) bool {
	folder, err := Path(strings.TrimSuffix(managed, "/*"))
	if clean, bad := Path(path); err != nil || bad != nil || clean != path {
		return true
	}
	return Covers(folder, path) || Covers(path, folder)
}
