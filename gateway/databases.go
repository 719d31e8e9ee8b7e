package gateway

import (
	"slices"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

// source finds a database that the caller may read. One that does not exist and one that they may not read get the same
// answer.
func (s *server) source(c *gin.Context, name string) (*database.Source, error) {
	if name == "" {
		return nil, fault.New(fault.Invalid, "gateway.source", "database is required")
	}
	src := s.cfg.Sources[name]
	if src == nil || !access.MayDatabase(principal(c), name) {
		return nil, fault.New(fault.NotFound, "gateway.source", "database '%s' not found", printable(name, 200))
	}
	return src, nil
}

// mayRead is the test for the relations of a database that the gate asks.
func mayRead(c *gin.Context, database string) func(sqlguard.Relation) bool {
	may := access.MayRead(principal(c), database)
	return func(r sqlguard.Relation) bool { return may(r.Schema, r.Name) }
}

func (s *server) databases(c *gin.Context) {
	list := []gin.H{}
	for name, src := range s.cfg.Sources {
		if access.MayDatabase(principal(c), name) {
			list = append(list, gin.H{"name": name, "kind": src.Dialect()})
		}
	}
	slices.SortFunc(list, func(a, b gin.H) int {
		if a["name"].(string) < b["name"].(string) {
			return -1
		}
		return 1
	})
	reply(c, list)
}

type tableInfo struct {
	Schema     string             `json:"schema"`
	Name       string             `json:"name"`
	Comment    string             `json:"comment"`
	Columns    []columnInfo       `json:"columns"`
	PrimaryKey []string           `json:"primary_key,omitempty"`
	Foreign    []foreignKeyInfo   `json:"foreign_keys,omitempty"`
	External   *externalTableInfo `json:"external,omitempty"`
}

type columnInfo struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
	Comment  string `json:"comment"`
	Key      string `json:"key,omitempty"` // primary, foreign, partition
}

type foreignKeyInfo struct {
	Columns    []string `json:"columns"`
	Schema     string   `json:"schema"`
	Table      string   `json:"table"`
	Referenced []string `json:"referenced"`
}

type externalTableInfo struct {
	Files       int      `json:"files"`
	PartitionBy []string `json:"partition_by"`
}

func (s *server) schemaTables(c *gin.Context) {
	tables, err := s.readable(c, c.Query("database"))
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, tables)
}

// readable lists the tables of a database that the caller may read, and of their foreign keys those that lead to one.
func (s *server) readable(c *gin.Context, name string) ([]tableInfo, error) {
	src, err := s.source(c, name)
	if err != nil {
		return nil, err
	}
	catalog, err := src.Catalog(c.Request.Context())
	if err != nil {
		return nil, err
	}
	may := mayRead(c, name)
	list := []tableInfo{}
	for _, t := range catalog.Tables {
		if may(t.Relation) {
			list = append(list, describeTable(t, may))
		}
	}
	return list, nil
}

func describeTable(t sqlguard.Table, may func(sqlguard.Relation) bool) tableInfo {
	info := tableInfo{Schema: t.Schema, Name: t.Name, Comment: t.Comment, Columns: []columnInfo{}, PrimaryKey: t.PrimaryKey}
	foreign := map[string]bool{}
	for _, fk := range t.Foreign {
		if may(fk.References) {
			info.Foreign = append(info.Foreign, foreignKeyInfo{Columns: fk.Columns, Schema: fk.References.Schema, Table: fk.References.Name, Referenced: fk.Referenced})
			for _, col := range fk.Columns {
				foreign[col] = true
			}
		}
	}
	partition := map[string]bool{}
	if t.External != nil {
		info.External = &externalTableInfo{Files: len(t.External.Files), PartitionBy: []string{}}
		for _, p := range t.External.Partitions {
			info.External.PartitionBy = append(info.External.PartitionBy, p.Name)
			partition[p.Name] = true
		}
	}
	for _, col := range t.Columns {
		ci := columnInfo{Name: col.Name, Type: col.Type, Nullable: col.Nullable, Comment: col.Comment}
		switch {
		case slices.Contains(t.PrimaryKey, col.Name):
			ci.Key = "primary"
		case foreign[col.Name]:
			ci.Key = "foreign"
		case partition[col.Name]:
			ci.Key = "partition"
		}
		info.Columns = append(info.Columns, ci)
	}
	return info
}

func (s *server) externalTables(c *gin.Context) {
	tables, err := s.readable(c, c.Query("database"))
	if err != nil {
		s.fail(c, err)
		return
	}
	reply(c, slices.DeleteFunc(tables, func(t tableInfo) bool { return t.External == nil }))
}
