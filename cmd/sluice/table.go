package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// printTable writes rows in aligned columns.
func printTable(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	for _, r := range rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	return tw.Flush()
}

// cell writes a JSON value as a person reads it. Line breaks and tabs would break the table, control characters the terminal.
func cell(v json.RawMessage) string {
	if string(v) == "null" || len(v) == 0 {
		return "NULL"
	}
	text := string(v)
	var s string
	if json.Unmarshal(v, &s) == nil {
		text = s
	}
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(printable(text))
}

// printable is a text of a model or a database as a terminal may get it: control characters, with which it could be told
// to do things, become blanks.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

// bytesText writes a size as people do.
func bytesText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
