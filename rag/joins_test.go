package rag

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func joinText(joins []Join) []string {
	var out []string
	for _, j := range joins {
		how := "inferred"
		if j.Declared {
			how = "declared"
		}
		out = append(out, fmt.Sprintf("%s.%s=%s.%s %s", j.From.Relation.Name, j.From.Column, j.To.Relation.Name, j.To.Column, how))
	}
	slices.Sort(out)
	return out
}

func TestJoins(t *testing.T) {
	const people = `CREATE TABLE person (id INTEGER, name VARCHAR); INSERT INTO person SELECT i, 'p' || i FROM range(1, 41) r(i);`
	for name, row := range map[string]struct {
		script string
		want   string
	}{
		"a declared key is enough, however empty": {
			`CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (x INTEGER REFERENCES a(id))`, "b.x=a.id declared"},
		"table_id refers to the id of a table": {
			people + `CREATE TABLE car (owner VARCHAR, person_id INTEGER); INSERT INTO car SELECT 'x', 1 + i % 30 FROM range(60) r(i)`,
			"car.person_id=person.id inferred"},
		"so does a name with more before it": {
			people + `CREATE TABLE car (seller_person_id INTEGER); INSERT INTO car SELECT 1 + i % 30 FROM range(60) r(i)`,
			"car.seller_person_id=person.id inferred"},
		"plural tables": {
			`CREATE TABLE categories (category_id INTEGER, label VARCHAR); INSERT INTO categories VALUES (1, 'a'), (2, 'b');
			CREATE TABLE goods (gid INTEGER, category_id INTEGER); INSERT INTO goods VALUES (1, 1), (2, 1), (3, 2)`,
			"goods.category_id=categories.category_id inferred"},
		"what all names of a table share is no word": {
			`CREATE TABLE wvReader (wvRdId VARCHAR, wvRdName VARCHAR, wvRdTown VARCHAR); INSERT INTO wvReader VALUES ('r1', 'x', 'a'), ('r2', 'y', 'a');
			CREATE TABLE wvLoan (wvLnNo VARCHAR, wvLnReaderId VARCHAR, wvLnDay VARCHAR); INSERT INTO wvLoan VALUES ('l1', 'r1', 'a'), ('l2', 'r1', 'b');
			CREATE TABLE wvShelf (wvShRoom VARCHAR, wvShRow VARCHAR, wvShLight VARCHAR)`,
			"wvLoan.wvLnReaderId=wvReader.wvRdId inferred"},
		"a comment that says so": {
			people + `CREATE TABLE car (boss INTEGER); INSERT INTO car SELECT 1 + i % 30 FROM range(60) r(i);
			COMMENT ON COLUMN car.boss IS 'ID of the person who pays'`,
			"car.boss=person.id inferred"},
		"values that are not there speak against it": {
			people + `CREATE TABLE car (seller_person_id INTEGER); INSERT INTO car SELECT 1 + i % 60 FROM range(60) r(i)`, ""},
		"some may be lost": {
			people + `CREATE TABLE car (seller_person_id INTEGER); INSERT INTO car SELECT 1 + i % 42 FROM range(60) r(i)`, "car.seller_person_id=person.id inferred"},
		"a column that is no key is no target": {
			people + `INSERT INTO person VALUES (1, 'twice'); CREATE TABLE car (person_id INTEGER); INSERT INTO car VALUES (1), (2), (1)`, ""},
		"another class of type": {
			people + `CREATE TABLE car (person_id VARCHAR); INSERT INTO car VALUES ('1'), ('2'), ('1')`, ""},
		"names that say nothing": {
			people + `CREATE TABLE car (id INTEGER, name VARCHAR, make VARCHAR); INSERT INTO car VALUES (1, 'p1', 'a'), (2, 'p2', 'b')`, ""},
		"a number of things refers to none": {
			people + `CREATE TABLE car (num_person INTEGER, person_count INTEGER); INSERT INTO car VALUES (1, 2), (1, 2)`, ""},
		"the table that the key is named for, of several": {
			`CREATE TABLE book (bid INTEGER, title VARCHAR); INSERT INTO book VALUES (1, 'a'), (2, 'b'), (3, 'c');
			CREATE TABLE cover (bid INTEGER, colour VARCHAR); INSERT INTO cover VALUES (1, 'red'), (2, 'red');
			CREATE TABLE loan (bid INTEGER, day VARCHAR); INSERT INTO loan VALUES (1, 'x'), (1, 'y'), (2, 'y')`,
			"cover.bid=book.bid inferred, loan.bid=book.bid inferred"},
		"a lead is one of the same table when its comment says so": {
			`CREATE TABLE agent (agent_id INTEGER PRIMARY KEY, lead INTEGER); INSERT INTO agent VALUES (1, NULL), (2, 1), (3, 1);
			COMMENT ON COLUMN agent.lead IS 'agent_id of the lead'`, "agent.lead=agent.agent_id inferred"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(joinText(know(t, duck(t, row.script), everyone).Joins()), ", "); got != row.want {
				t.Errorf("joins: %q, want %q", got, row.want)
			}
		})
	}
}
