package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// readFile lays the file over the settings and returns every mistake, each with its line.
func (c *Config) readFile(path string, text []byte, env func(string) string) []error {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return []error{fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, false))}
	}
	var problems []error
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		problems = append(problems, unknownKeys(path, doc.Body, reflect.TypeOf(*c), "")...)
		problems = append(problems, expand(path, doc.Body, env)...)
		if len(problems) != 0 {
			continue
		}
		if err := yaml.NodeToValue(doc.Body, c); err != nil {
			problems = append(problems, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, false)))
		}
	}
	return problems
}

// later are keys of the contract that this version does not obey yet. Dropped in silence they would be worse than refused.
var later = []string{
	"requests_per_principal", "tls", "credentials",
}

// unknownKeys walks a mapping beside the type that it shall fill. A misspelt key that is silently dropped would leave
// a default in force, so it is an error.
func unknownKeys(path string, node ast.Node, t reflect.Type, at string) []error {
	mapping, ok := node.(ast.MapNode)
	if !ok {
		return nil
	}
	var problems []error
	for it := mapping.MapRange(); it.Next(); {
		key, value := it.Key().GetToken(), it.Value()
		where := strings.TrimPrefix(at+"."+key.Value, ".")
		switch t.Kind() {
		case reflect.Struct:
			field, ok := fieldOf(t, key.Value)
			if !ok {
				problem := "unknown key " + where
				if slices.Contains(later, key.Value) {
					problem = where + " is not there in this version"
				}
				problems = append(problems, fmt.Errorf("%s: line %d: %s", path, key.Position.Line, problem))
				continue
			}
			problems = append(problems, unknownKeys(path, value, field, where)...)
		case reflect.Map:
			problems = append(problems, unknownKeys(path, value, t.Elem(), where)...)
		}
	}
	return problems
}

func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("yaml") == key && key != "-" {
			return f.Type, true
		}
	}
	return nil, false
}

// expand replaces ${NAME} in text values, so that secrets can stay out of the file.
func expand(path string, node ast.Node, env func(string) string) []error {
	v := &expander{path: path, env: env}
	ast.Walk(v, node)
	return v.problems
}

type expander struct {
	path     string
	env      func(string) string
	problems []error
}

func (e *expander) Visit(node ast.Node) ast.Visitor {
	if s, ok := node.(*ast.StringNode); ok && strings.Contains(s.Value, "${") {
		s.Value = os.Expand(s.Value, func(name string) string {
			v := e.env(name)
			if v == "" {
				e.problems = append(e.problems, fmt.Errorf("%s: line %d: ${%s} is not set", e.path, s.GetToken().Position.Line, name))
			}
			return v
		})
	}
	return e
}
