package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// validateDatabases looks at the sources. A URL is not repeated in what it says: it holds a password.
func (c *Config) validateDatabases() (problems []error) {
	for _, name := range slices.Sorted(maps.Keys(c.Databases)) {
		db := c.Databases[name]
		bad := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("databases.%s%s", name, fmt.Sprintf(format, args...)))
		}
		if !nameForm.MatchString(name) {
			bad(": a name has letters, digits, _ and -, and at most 63 of them")
		}
		switch db.Kind {
		case "duckdb":
			if db.Path == "" {
				bad(".path: is missing")
			}
			if db.URL != "" || len(db.Schemas) > 0 {
				bad(": url and schemas are for kind postgres")
			}
		case "postgres":
			if db.Path != "" {
				bad(".path: is for kind duckdb; a PostgreSQL server has a url")
			}
			if problem := postgresURL(db.URL); problem != "" {
				bad(".url: %s", problem)
			}
			if problem := postgresSchemas(db.Schemas); problem != "" {
				bad(".schemas: %s", problem)
			}
		default:
			bad(".kind: %q is neither duckdb nor postgres", db.Kind)
		}
	}
	return problems
}

// postgresURL says what is wrong with a URL; "" is nothing.
func postgresURL(v string) string {
	const form = `"postgres://user:password@host:5432/database"`
	if v == "" {
		return `is missing; it is ` + form + `, or "${NAME}" to take it from a variable`
	}
	u, err := url.Parse(v)
	switch {
	case err != nil:
		return "cannot be read as " + form + "; in a password, characters such as @ / : # ? % are written %40 %2F %3A %23 %3F %25"
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return "must be " + form
	case u.Host == "" && u.Query().Get("host") == "":
		return "names no host; a socket is postgres:///database?host=/folder"
	case strings.Trim(u.Path, "/") == "" && u.Query().Get("dbname") == "" && u.Query().Get("database") == "":
		return "names no database: it is " + form
	}
	return ""
}

// postgresSchemas says what is wrong with a list of schemas; "" is nothing.
func postgresSchemas(list []string) string {
	for i, name := range list {
		switch {
		case name == "":
			return "a name is empty"
		case strings.HasPrefix(name, "pg_") || name == "information_schema":
			return name + " is the system's own"
		case slices.Contains(list[:i], name):
			return name + " is there twice"
		}
	}
	return ""
}
