package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// pgType is what the catalogue says of a type that is no plain one.
type pgType struct {
	name      string
	kind      byte   // typtype: b base, c composite, d domain, e enum, r range, m multirange, p pseudo
	elem      uint32 // of an array
	array     bool   // a true array, not oidvector and the like
	delimiter byte   // between the elements of its text form
	base      uint32 // of a domain
	modifier  int32  // of the domain's base; -1: none
	extension string // the extension that it belongs to
}

const typesQuery = `SELECT t.oid::int8, t.typname, t.typtype, t.typelem::int8,
	coalesce((SELECT e.typarray = t.oid FROM pg_catalog.pg_type e WHERE e.oid = t.typelem), false),
	coalesce((SELECT e.typdelim FROM pg_catalog.pg_type e WHERE e.oid = t.typelem), ','), t.typbasetype::int8, t.typtypmod,
	coalesce((SELECT x.extname FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension x ON x.oid = d.refobjid
		WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'
		AND d.refclassid = 'pg_catalog.pg_extension'::regclass LIMIT 1), '')
	FROM pg_catalog.pg_type t WHERE t.oid = ANY ($1::oid[])`

const moneyQuery = `SELECT pg_catalog.scale(1::numeric::money::numeric)`

// learn asks the catalogue for the types of a result that are not known yet, with their elements and bases. Most results
// have none. asked tells that it sent a query.
func (c *conn) learn(ctx context.Context, fields []pgconn.FieldDescription) (asked bool, err error) {
	money := false
	var ask []uint32
	for _, f := range fields {
		ask = append(ask, f.DataTypeOID)
	}
	for round := 0; len(ask) > 0 && round < 10; round++ {
		var unknown, next []uint32
		for _, oid := range ask {
			money = money || oid == oidMoney
			if t, ok := c.types[oid]; ok {
				next = append(next, t.elem, t.base)
			} else if !known(oid) {
				unknown = append(unknown, oid)
			}
		}
		asked = asked || len(unknown) > 0
		parts, err := c.lookUp(ctx, unknown)
		if err != nil {
			return asked, err
		}
		ask = append(next, parts...)
	}
	if !money || c.moneyScale > 0 {
		return asked, nil
	}
	got, err := c.queryOne(ctx, moneyQuery, 1)
	if err != nil {
		return true, err
	}
	scale, err := strconv.Atoi(got[0])
	if err != nil || scale < 0 || scale > 18 {
		return true, fmt.Errorf("postgres: money has the scale %q", got[0])
	}
	c.moneyScale = int32(scale) + 1
	return true, nil
}

// lookUp remembers types, and gives those that they are made of.
func (c *conn) lookUp(ctx context.Context, oids []uint32) (parts []uint32, err error) {
	if len(oids) == 0 {
		return nil, nil
	}
	list := make([]string, len(oids))
	for i, oid := range oids {
		list[i] = strconv.FormatUint(uint64(oid), 10)
		c.types[oid] = pgType{} // one that is gone is text
	}
	defer func() {
		if err != nil {
			for _, oid := range oids {
				delete(c.types, oid)
			}
		}
	}()
	got, err := c.query(ctx, typesQuery, 9, "{"+strings.Join(list, ",")+"}")
	if err != nil {
		return nil, err
	}
	for _, r := range got {
		var n [4]int64 // OIDs are beyond 31 bits
		for i, at := range []int{0, 3, 6, 7} {
			if n[i], err = strconv.ParseInt(r[at], 10, 64); err != nil {
				return nil, fmt.Errorf("postgres: pg_type: %w", err)
			}
		}
		if r[2] == "" || r[5] == "" {
			return nil, oddAnswer()
		}
		t := pgType{name: r[1], kind: r[2][0], array: r[4] == "t", delimiter: r[5][0], modifier: int32(n[3]), extension: r[8]}
		if t.array {
			t.elem = uint32(n[1])
		}
		if t.kind == 'd' {
			t.base = uint32(n[2])
		}
		c.types[uint32(n[0])] = t
		parts = append(parts, t.elem, t.base)
	}
	return parts, nil
}
