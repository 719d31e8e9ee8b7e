package gateway

import (
	"maps"
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
	if err := access.MayQuery(principal(c)); err != nil {
		return nil, err
	}
	src := s.cfg.Sources[name]
	if src == nil || !access.MayDatabase(principal(c), name) {
		return nil, fault.New(fault.NotFound, "gateway.source", "database '%s' not found", printable(name, 200))
	}
	return src, nil
}

// mayRead is the test for the relations of a database that the gate asks.
func mayRead(c *gin.Context, src *database.Source) func(sqlguard.Relation) bool {
	may := access.MayRead(principal(c), src.Name(), src.DefaultSchema())
	return func(r sqlguard.Relation) bool { return may(r.Schema, r.Name) }
}

// readableNames are the names of the databases that the caller may read, sorted.
func (s *server) readableNames(c *gin.Context) []string {
	who := principal(c)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.cfg.Sources)), func(name string) bool { return !access.MayDatabase(who, name) })
}

type databaseInfo struct {
	Name     string           `json:"name"`
	Kind     sqlguard.Dialect `json:"kind"`
	Writable bool             `json:"writable,omitempty"` // by the caller
}

func (s *server) databases(c *gin.Context, _ int) ([]databaseInfo, error) {
	var all []databaseInfo
	for _, name := range s.readableNames(c) {
		src := s.cfg.Sources[name]
		all = append(all, databaseInfo{Name: name, Kind: src.Dialect(), Writable: src.Writable() && access.MayWrite(principal(c), name) == nil})
	}
	return all, nil
}

type tableInfo struct {
	Database   string             `json:"database,omitempty"` // where tables of several are listed
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
	Files       *int     `json:"files,omitempty"` // in the list of external tables only: to count them, the lake is read
	PartitionBy []string `json:"partition_by"`
	Error       string   `json:"error,omitempty"` // why they could not be counted
}

func (s *server) schemaTables(c *gin.Context, _ int) ([]tableInfo, error) {
	return s.readable(c, c.Query("database"), func(sqlguard.Table, *tableInfo) bool { return true })
}

// readable lists the tables of a database that the caller may read, and of their foreign keys those that lead to one.
// keep may add to what is shown of a table, or leave it out.
func (s *server) readable(c *gin.Context, name string, keep func(sqlguard.Table, *tableInfo) bool) ([]tableInfo, error) {
	src, err := s.source(c, name)
	if err != nil {
		return nil, err
	}
	catalog, err := src.Catalog(c.Request.Context())
	if err != nil {
		return nil, err
	}
	may := mayRead(c, src)
	var all []tableInfo
	for _, t := range catalog.Tables {
		if !may(t.Relation) {
			continue
		}
		if info := describeTable(t, may); keep(t, &info) {
			all = append(all, info)
		}
	}
	return all, nil
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
		info.External = &externalTableInfo{PartitionBy: []string{}}
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

// externalTables lists those of one database, or of all that the caller may read.
func (s *server) externalTables(c *gin.Context, limit int) ([]tableInfo, error) {
	names := s.readableNames(c)
	if name, given := c.GetQuery("database"); given {
		names = []string{name}
	}
	var all []tableInfo
	for _, name := range names {
		tables, err := s.readable(c, name, func(t sqlguard.Table, info *tableInfo) bool {
			if t.External == nil || limit > 0 && len(all) >= limit {
				return false
			}
			info.Database = name
			s.countFiles(c, t.External, info.External)
			return true
		})
		if err != nil {
			return nil, err
		}
		all = append(all, tables...)
	}
	return all, nil
}

// countFiles counts a table's files. One that cannot be counted does not keep the others from being listed.
func (s *server) countFiles(c *gin.Context, table *sqlguard.External, info *externalTableInfo) {
	files, err := table.Files(c.Request.Context())
	if err != nil {
		s.cfg.Log.Warn("an external table's files cannot be listed", "request_id", requestIDOf(c), "error", logged(err))
		info.Error = sentence(fault.Public(err))
		return
	}
	n := len(files)
	info.Files = &n
}
