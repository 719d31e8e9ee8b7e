package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/database"
	"sluice/database/pgrole"
)

// databases looks at the PostgreSQL sources: whether they answer, and whether the role can do more than read.
func (d *doctor) databases(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(d.cfg.Databases)) {
		if d.cfg.Databases[name].Kind == database.KindPostgres {
			d.postgres(ctx, name)
		}
	}
}

func (d *doctor) postgres(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	d.report.Databases = append(d.report.Databases, databaseReport{Name: name, Kind: database.KindPostgres, Schemas: d.cfg.Databases[name].Schemas})
	r := &d.report.Databases[len(d.report.Databases)-1]
	fails := func(err error) {
		r.Error, _, _ = strings.Cut(describe(err), "\n")
		d.broken("databases."+name+": "+r.Error, "sluice serve starts all the same, and answers 503 to who asks that database, until it can be used")
	}
	src, err := database.Open(ctx, sourceConfig(d.cfg, name, nil), nil)
	if err != nil {
		d.broken("databases."+name+": "+describe(err), "sluice serve does not start with it")
		return
	}
	defer src.Close()
	cat, err := src.Catalog(ctx)
	if err != nil {
		fails(err)
		return
	}
	role, err := pgrole.Examine(ctx, d.cfg.Databases[name].URL)
	if err != nil {
		fails(err)
		return
	}
	r.Reachable, r.Version, r.Role, r.Tables = true, role.Version, role.Name, len(cat.Tables)
	if r.Tables == 0 {
		d.warn(fmt.Sprintf("databases.%s: the role %s may read no table in %s", name, role.Name, strings.Join(r.Schemas, ", ")), roleHint(name))
	}
	if d.cfg.Databases[name].Writable {
		role.Writes, role.Creates = nil, nil // which it is there for
	}
	for _, more := range more(role) {
		d.warn(fmt.Sprintf("databases.%s: the role %s %s", name, role.Name, more), roleHint(name))
	}
}

func roleHint(name string) string {
	return "sluice doctor --print-role-sql --database " + name + " prints a script that makes a role which only reads: run it with psql, and name that role in the url"
}

// more says what a role can do beyond reading. What Sluice runs is read-only all the same: this is what would be left if
// that failed.
func more(r pgrole.Role) (all []string) {
	if slices.Contains(r.Attributes, "SUPERUSER") {
		return []string{"is a superuser, whom no right of the server holds back"}
	}
	list := func(format string, names []string) {
		if len(names) > 0 {
			all = append(all, fmt.Sprintf(format, firstOf(names)))
		}
	}
	list("has %s", r.Attributes)
	list("is a member of %s", r.System)
	list("may write to %s", r.Writes)
	list("may make tables in the schemas %s", r.Creates)
	list("may call %s, with the rights of the owner (SECURITY DEFINER)", r.Definers)
	return all
}

// firstOf names three, and tells that there are more.
func firstOf(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + " and more"
	}
	return strings.Join(names, ", ")
}
