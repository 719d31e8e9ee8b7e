package postgres

import (
	"math"
	"strconv"
	"strings"

	"sluice/fault"
)

// bindText writes the values of a statement's parameters as text, which the server reads as the types that it described.
func bindText(oids []uint32, params []any) ([][]byte, error) {
	if len(oids) != len(params) {
		return nil, fault.New(fault.Invalid, "postgres.Run", "the statement has %d parameters, and %d values came with it", len(oids), len(params))
	}
	out := make([][]byte, len(params))
	for i, p := range params {
		switch v := p.(type) {
		case nil:
		case bool:
			out[i] = strconv.AppendBool([]byte{}, v)
		case int64:
			out[i] = strconv.AppendInt([]byte{}, v, 10)
		case float64:
			out[i] = []byte(floatText(v))
		case string:
			if strings.ContainsRune(v, 0) {
				return nil, fault.New(fault.Invalid, "postgres.Run", "parameter %d has a zero byte, which text cannot hold", i+1)
			}
			out[i] = []byte(v) // of "" too it is not nil, which would be NULL
		default:
			return nil, fault.New(fault.Invalid, "postgres.Run", "parameter %d has a type that cannot be bound", i+1)
		}
	}
	return out, nil
}

// floatText writes a number so that an integer parameter takes 3.0 as well: JSON makes no difference between them.
func floatText(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
