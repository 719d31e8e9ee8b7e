package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// On PostgreSQL score.py reads with psycopg2, which gives Python other values than duckdb does for intervals and JSON.

// psycopgCell reads one cell of a PostgreSQL result in the normal form of score.py.
func psycopgCell(f arrow.Field, column arrow.Array, i int) (value, error) {
	if !column.IsNull(i) {
		switch c := column.(type) {
		case *array.MonthDayNanoInterval:
			v := c.Value(i)
			days := int64(v.Months)/12*365 + int64(v.Months)%12*30 + int64(v.Days) // a year is 365 days there, a month 30
			return ofFloat(float64(days*86400e6+v.Nanoseconds/1000) / 1e6), nil
		case *array.String:
			if name, _ := f.Metadata.GetValue("ARROW:extension:name"); name == "arrow.json" {
				return ofJSON(c.Value(i))
			}
		}
	}
	return cell(f, column, i)
}

// ofJSON is norm(json.loads(text)).
func ofJSON(text string) (value, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return jsonNorm(d)
}

// jsonNorm reads one value: a list's items are normalised, an object is Python's repr.
func jsonNorm(d *json.Decoder) (value, error) {
	token, err := d.Token()
	if err != nil {
		return value{}, err
	}
	if token != json.Delim('[') {
		return jsonScalar(d, token, jsonRepr)
	}
	var items []string
	for d.More() {
		v, err := jsonNorm(d)
		if err != nil {
			return value{}, err
		}
		items = append(items, repr(v))
	}
	_, err = d.Token()
	return ofText("[" + strings.Join(items, ", ") + "]"), err
}

// jsonScalar gives what a token stands for; nested reads what is inside of an object.
func jsonScalar(d *json.Decoder, token json.Token, nested func(*json.Decoder) (string, error)) (value, error) {
	switch t := token.(type) {
	case nil:
		return value{}, nil
	case bool:
		if t {
			return ofInt("1"), nil
		}
		return ofInt("0"), nil
	case json.Number:
		if bytes.ContainsAny([]byte(t), ".eE") {
			f, err := t.Float64()
			return ofFloat(f), err
		}
		return ofInt(string(t)), nil
	case string:
		return ofText(t), nil
	}
	text, err := jsonObject(d, nested)
	return ofText(text), err
}

func jsonObject(d *json.Decoder, nested func(*json.Decoder) (string, error)) (string, error) {
	var items []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", err
		}
		text, err := nested(d)
		if err != nil {
			return "", err
		}
		name, _ := key.(string)
		items = append(items, stringRepr(name)+": "+text)
	}
	_, err := d.Token()
	return "{" + strings.Join(items, ", ") + "}", err
}

// jsonRepr is Python's repr of one value, as it stands inside of an object.
func jsonRepr(d *json.Decoder) (string, error) {
	token, err := d.Token()
	if errors.Is(err, io.EOF) {
		return "", io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", err
	}
	switch t := token.(type) {
	case bool:
		if t {
			return "True", nil
		}
		return "False", nil
	case string:
		return stringRepr(t), nil
	case json.Delim:
		if t == '{' {
			return jsonObject(d, jsonRepr)
		}
		var items []string
		for d.More() {
			text, err := jsonRepr(d)
			if err != nil {
				return "", err
			}
			items = append(items, text)
		}
		_, err = d.Token()
		return "[" + strings.Join(items, ", ") + "]", err
	}
	v, err := jsonScalar(d, token, nil)
	return repr(v), err
}
