package database

import (
	"encoding/json"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"go.uber.org/goleak"
)

// drain gives the rows of a reader as JSON lines.
func drain(t *testing.T, r array.RecordReader) []string {
	t.Helper()
	out := []string{}
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			row := make([]any, b.NumCols())
			for j := range row {
				row[j] = JSONValue(b.Schema().Field(j), b.Column(j), i)
			}
			line, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(line))
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMain fails when a goroutine, such as a watch for a cancelled statement, outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
