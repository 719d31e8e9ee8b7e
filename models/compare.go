package models

import (
	"bytes"
	"errors"
	"reflect"
	texttemplate "text/template"
)

// bytesPerStep is how many bytes are compared in about the time of one step. Two equal texts of megabytes, in some loops, are
// hours otherwise.
const bytesPerStep = 64

// compares replaces the language's comparisons by ones that count the bytes they compare, and mean the same.
func (b *budget) compares(funcs texttemplate.FuncMap) {
	funcs["eq"] = func(first reflect.Value, others ...reflect.Value) (bool, error) {
		if len(others) == 0 {
			return false, errors.New("missing argument for comparison")
		}
		for _, other := range others {
			if same, err := b.compare("eq", first, other); same || err != nil {
				return same, err
			}
		}
		return false, nil
	}
	for _, name := range []string{"ne", "lt", "le", "gt", "ge"} {
		funcs[name] = func(x, y reflect.Value) (bool, error) { return b.compare(name, x, y) }
	}
}

func (b *budget) compare(name string, x, y reflect.Value) (bool, error) {
	if err := b.step(min(textIn(x), textIn(y)) / bytesPerStep); err != nil {
		return false, err
	}
	var out bytes.Buffer
	err := comparisons[name].Execute(&out, map[string]any{"x": inside(x), "y": inside(y)})
	var failed texttemplate.ExecError
	if errors.As(err, &failed) && errors.Unwrap(failed.Err) != nil {
		err = errors.Unwrap(failed.Err) // without its place in this template
	}
	return out.String() == "true", err
}

// comparisons are the language's own, which it has only as templates.
var comparisons = func() map[string]*texttemplate.Template {
	all := map[string]*texttemplate.Template{}
	for _, name := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
		all[name] = texttemplate.Must(texttemplate.New(name).Parse("{{ " + name + " .x .y }}"))
	}
	return all
}()

func inside(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	return v.Interface()
}

// textIn is how many bytes of a value a comparison can look at.
func textIn(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Interface:
		return textIn(v.Elem())
	case reflect.String:
		return v.Len()
	case reflect.Struct:
		for i := range v.NumField() {
			n += textIn(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			n += textIn(v.Index(i))
		}
	}
	return n
}
