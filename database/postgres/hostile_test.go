package postgres

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"sluice/fault"
)

// hostile answers like a PostgreSQL server, with the rows that change gives in place of the good ones for a query.
type hostile struct {
	silent func(query string) bool // says nothing to such a query; nil: answers all
	change func(query string) (fields int, rows [][][]byte, changed bool)
}

// oursAre are good answers: one table orders(id bigint). The key is in the query's text.
var oursAre = map[string][][][]byte{
	"current_database(), current_user": texts([]string{"1", "1", "erp", "u", "f"}),
	"SELECT current_database()":        texts([]string{"erp"}),
	"WITH RECURSIVE mine":              texts([]string{"1", "public", "orders", "r", "", "f"}),
	"WITH RECURSIVE domains":           texts([]string{"1", "1", "id", "bigint", "f", ""}),
	"k.contype":                        nil,
	"pg_extension x JOIN":              nil,
	"pg_catalog.pg_type t WHERE":       texts([]string{"99999", "odd", "b", "0", "f", ",", "0", "-1", ""}),
	"::money::numeric":                 texts([]string{"2"}),
}

func texts(rows ...[]string) (out [][][]byte) {
	for _, r := range rows {
		var row [][]byte
		for _, v := range r {
			row = append(row, []byte(v))
		}
		out = append(out, row)
	}
	return out
}

func ours(query string) (key string) {
	for k := range oursAre {
		if strings.Contains(query, k) && len(k) > len(key) {
			key = k
		}
	}
	return key
}

func (h hostile) answer(query string) (fields int, rows [][][]byte) {
	if fields, rows, changed := h.change(query); changed {
		return fields, rows
	}
	if key := ours(query); key != "" {
		if rows := oursAre[key]; len(rows) > 0 {
			return len(rows[0]), rows
		}
		return 1, nil
	}
	return 1, texts([]string{"x"})
}

// serve speaks with one client until it leaves.
func (h hostile) serve(c net.Conn) {
	defer c.Close()
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	query, status := "", byte('I')
	for b.Flush() == nil {
		m, err := b.Receive()
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *pgproto3.Query:
			status = 'T'
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("BEGIN")})
			b.Send(&pgproto3.ReadyForQuery{TxStatus: status})
		case *pgproto3.Parse:
			query = m.Query
			if h.silent != nil && h.silent(query) {
				for err == nil { // until the client leaves
					_, err = b.Receive()
				}
				return
			}
			b.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Bind:
			b.Send(&pgproto3.BindComplete{})
		case *pgproto3.Describe:
			if m.ObjectType == 'S' {
				params := []uint32{}
				if strings.Contains(query, "$1") {
					params = []uint32{oidText}
				}
				b.Send(&pgproto3.ParameterDescription{ParameterOIDs: params})
			}
			fields, _ := h.answer(query)
			d := &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{}}
			for range fields {
				oid := uint32(oidText)
				switch {
				case strings.Contains(query, "odd"):
					oid = 99999
				case strings.Contains(query, "coins"):
					oid = oidMoney
				}
				d.Fields = append(d.Fields, pgproto3.FieldDescription{Name: []byte("c"), DataTypeOID: oid, TypeModifier: -1})
			}
			b.Send(d)
		case *pgproto3.Execute:
			if query == "ROLLBACK" || query == "DISCARD ALL" {
				status = 'I'
				b.Send(&pgproto3.CommandComplete{CommandTag: []byte(query)})
				continue
			}
			_, rows := h.answer(query)
			for _, r := range rows {
				b.Send(&pgproto3.DataRow{Values: r})
			}
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		case *pgproto3.Sync:
			b.Send(&pgproto3.ReadyForQuery{TxStatus: status})
		case *pgproto3.Terminate:
			return
		}
	}
}

// listen serves until the test ends, and gives the URL.
func (h hostile) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go h.serve(c)
		}
	}()
	return "postgres://u:p@" + l.Addr().String() + "/erp?sslmode=disable"
}

func TestAServerThatAnswersOddlyCostsAnErrorAndNoConnection(t *testing.T) {
	none := func(string) (int, [][][]byte, bool) { return 0, nil, false }
	short := func(of string) func(string) (int, [][][]byte, bool) {
		return func(query string) (int, [][][]byte, bool) { return 1, texts([]string{"1"}), ours(query) == of }
	}
	lacking := func(of string) func(string) (int, [][][]byte, bool) {
		return func(query string) (int, [][][]byte, bool) { return 1, nil, ours(query) == of }
	}
	nulls := func(query string) (int, [][][]byte, bool) {
		return 9, [][][]byte{{[]byte("99999"), nil, nil, []byte("0"), nil, nil, []byte("0"), []byte("-1"), nil}}, ours(query) == "pg_catalog.pg_type t WHERE"
	}
	rows := func(fields int, values ...string) func(string) (int, [][][]byte, bool) {
		return func(query string) (int, [][][]byte, bool) {
			return fields, texts(values), strings.Contains(query, "statement")
		}
	}
	cases := map[string]struct {
		change func(string) (int, [][][]byte, bool)
		sql    string
		fine   bool
	}{
		"as it should":                       {none, "SELECT 'statement'", true},
		"no name of the database":            {lacking("SELECT current_database()"), "SELECT 'statement'", false},
		"no answer about changes":            {lacking("current_database(), current_user"), "SELECT 'statement'", false},
		"relations of one column":            {short("WITH RECURSIVE mine"), "SELECT 'statement'", false},
		"columns of one column":              {short("WITH RECURSIVE domains"), "SELECT 'statement'", false},
		"keys of one column":                 {short("k.contype"), "SELECT 'statement'", false},
		"extensions of one column":           {short("pg_extension x JOIN"), "SELECT 'statement'", false},
		"types of one column":                {short("pg_catalog.pg_type t WHERE"), "SELECT 'odd'", false},
		"types without kind and delimiter":   {nulls, "SELECT 'odd'", false},
		"no digits of money":                 {lacking("::money::numeric"), "SELECT 'coins'", false},
		"fewer values than columns":          {rows(2, "1"), "SELECT 'statement'", false},
		"more values than columns":           {rows(1, "1", "2"), "SELECT 'statement'", false},
		"a row without values":               {rows(1), "SELECT 'statement'", false},
		"more columns than any server gives": {rows(maxColumns + 1), "SELECT 'statement'", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e, err := Open(context.Background(), Config{Name: "erp", URL: hostile{change: c.change}.listen(t), MaxConns: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for range 5 { // more often than there are connections
				_, err := e.Catalog(t.Context())
				if err == nil {
					err = run(t, e, c.sql)
				}
				if (err == nil) != c.fine || err != nil && fault.CodeOf(err) != fault.Internal {
					t.Fatalf("%v", err)
				}
				e.forget()
			}
		})
	}
}

func TestAServerThatSaysNothingIsBusy(t *testing.T) {
	none := func(string) (int, [][][]byte, bool) { return 0, nil, false }
	for name, to := range map[string]string{"to the catalogue": "WITH RECURSIVE mine", "to a check": "statement"} {
		t.Run(name, func(t *testing.T) {
			h := hostile{change: none, silent: func(query string) bool { return strings.Contains(query, to) }}
			e, err := Open(context.Background(), Config{Name: "erp", URL: h.listen(t), MaxConns: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			e.own = 200 * time.Millisecond
			waits := make(chan error)
			for range 3 { // those that wait for the first one too
				go func() {
					_, err := e.Catalog(t.Context())
					if err == nil {
						err = e.check(t.Context(), "SELECT 'statement'", false, func(string) bool { return true })
					}
					waits <- err
				}()
			}
			for range 3 {
				if err := <-waits; fault.CodeOf(err) != fault.Busy || fault.Public(err).RetryAfter == 0 {
					t.Errorf("%v", err)
				}
			}
		})
	}
}
