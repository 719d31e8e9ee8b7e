package lakecopy

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"sluice/access"
	"sluice/fault"
)

// ownFolder is the server's own folder at the root of every connection. access.Path refuses it as a target.
const ownFolder = ".sluice"

// Connection is a lake root that COPY may write below.
type Connection struct {
	Name           string
	URL            string   // file:///srv/lake
	WriteAllowlist []string // folders below the root; empty: COPY is disabled for everybody
	Managed        []string // folders owned by another system: never written, never read as external tables
}

// Root gives the absolute local folder of a file URL. Another kind of lake is Unimplemented; a URL that makes no sense
// is Invalid.
func (c Connection) Root() (string, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme == "":
		return "", fault.New(fault.Invalid, "lakecopy.Root", "connection %s: its url is not a URL such as file:///srv/lake", c.Name)
	case u.Scheme != "file":
		return "", fault.New(fault.Unimplemented, "lakecopy.Root", "connection %s: lakes on %s are not in this version; use a file:// folder", c.Name, u.Scheme)
	case u.Host != "" && u.Host != "localhost", u.User != nil, u.Fragment != "", !strings.HasPrefix(u.Path, "/"):
		return "", fault.New(fault.Invalid, "lakecopy.Root", "connection %s: the url must name a local folder by its absolute path, as file:///srv/lake does", c.Name)
	case strings.ContainsAny(u.Path, "*?[]{}\x00"):
		// The engine that reads a file back takes these for a pattern.
		return "", fault.New(fault.Invalid, "lakecopy.Root", "connection %s: none of * ? [ ] { } may be in the folder's name", c.Name)
	case filepath.Clean(u.Path) == "/":
		return "", fault.New(fault.Invalid, "lakecopy.Root", "connection %s: the file system's root is no lake", c.Name)
	}
	return filepath.Clean(u.Path), nil
}

// patterns refuses folders in the lists that can never mean one: such a slip in write_allowlist would open nothing, one in
// Managed would close everything, and nobody would know why.
func (c Connection) patterns() error {
	var errs []error
	for _, setting := range []struct {
		name     string
		patterns []string
	}{{"write_allowlist", c.WriteAllowlist}, {"managed", c.Managed}} {
		for _, pattern := range setting.patterns {
			if pattern == "/" || pattern == "/*" {
				continue
			}
			if _, err := access.Path(strings.TrimSuffix(pattern, "/*")); err != nil {
				errs = append(errs, fmt.Errorf("connection %s: %s has %q, which names no folder: %s; write folders relative to the root, "+
					"such as exports or exports/2024, or / for all of it", c.Name, setting.name, pattern, fault.Public(err).Msg))
			}
		}
	}
	return errors.Join(errs...)
}

// mayWrite checks a target path, cleaned by access.Path, against the connection's lists.
func (c Connection) mayWrite(path string) error {
	if len(c.WriteAllowlist) == 0 {
		return fail(KindAuth, "COPY to connection %s is disabled: its write_allowlist is empty", c.Name)
	}
	if err := c.unmanaged(path); err != nil {
		return err
	}
	for _, pattern := range c.WriteAllowlist {
		if access.Covers(pattern, path) {
			return nil
		}
	}
	return fail(KindAuth, "the write_allowlist of connection %s does not cover %s", c.Name, path)
}

// unmanaged refuses folders that another system owns, what is below them and what is above.
func (c Connection) unmanaged(path string) error {
	for _, folder := range c.Managed {
		if access.Overlaps(folder, path) {
			return fail(KindPath, "%s is, holds or lies in a managed folder of connection %s", path, c.Name)
		}
	}
	return nil
}
