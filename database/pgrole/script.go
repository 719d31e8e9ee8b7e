package pgrole

import (
	_ "embed"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sluice/fault"
)

//go:embed role.sql
var template string

// DefaultName is the role's name unless the operator chooses one.
const DefaultName = "sluice_reader"

// Script gives the script for psql that makes a role which reads the given schemas. timeout is that of its statements.
// The password is a variable of psql, so it stands nowhere in the text.
func Script(name string, schemas []string, timeout time.Duration) (string, error) {
	if len(schemas) == 0 {
		return "", fault.New(fault.Invalid, "pgrole.Script", "there is no schema to read")
	}
	for _, n := range append([]string{name}, schemas...) {
		if n == "" || len(n) > 63 || strings.ContainsFunc(n, unicode.IsControl) {
			return "", fault.New(fault.Invalid, "pgrole.Script", "%q is no name of a role or schema: it has from 1 to 63 bytes and no control characters", n)
		}
		// psql looks for its variables and commands outside quotes only, a dollar quote ends at its tag.
		if strings.Contains(n, "$sluice$") {
			return "", fault.New(fault.Invalid, "pgrole.Script", "%q has the mark that quotes the script's blocks", n)
		}
	}
	list := make([]string, len(schemas))
	for i, s := range schemas {
		list[i] = text(s)
	}
	return strings.NewReplacer(
		"{{list}}", strings.Join(schemas, ", "), "{{name}}", name, "{{role}}", identifier(name), "{{text}}", text(name),
		"{{inside}}", strings.NewReplacer("'", "''", "%", "%%").Replace(identifier(name)),
		"{{schemas}}", "ARRAY["+strings.Join(list, ", ")+"]", "{{timeout}}", strconv.FormatInt(timeout.Milliseconds(), 10)+"ms",
	).Replace(template), nil
}

func identifier(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// text writes a literal that means the same with and without standard_conforming_strings.
func text(s string) string {
	if strings.Contains(s, `\`) {
		return "E'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
