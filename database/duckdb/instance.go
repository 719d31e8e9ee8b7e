package duckdb

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	duck "github.com/duckdb/duckdb-go-bindings"

	"sluice/fault"
)

// instance is one open database file. DuckDB allows one instance a file in a process, so sources of the same file share
// it.
type instance struct {
	db    duck.Database
	key   string // the file's real path
	setup string // how it is opened; the same file cannot be open in two ways
	spill *spill // removed at the end
	users int

	schemas atomic.Int64 // how often the catalogue was changed
}

// registry holds the open instances of the process.
var registry = struct {
	sync.Mutex
	open map[string]*instance
}{open: map[string]*instance{}}

// acquire opens a file locked down, or joins those who have it open in the same way.
func acquire(cfg Config) (*instance, error) {
	key, err := filepath.EvalSymlinks(cfg.Path)
	if err == nil {
		key, err = filepath.Abs(key)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "database.Open", "the file of database %s cannot be opened", cfg.Name)
	}
	setup := fmt.Sprintf("%t %s %q %s %d %q", cfg.Writable, cfg.SessionTimezone, cfg.LakeRoots, cfg.MemoryLimit, cfg.Threads, cfg.TempDir)
	registry.Lock()
	defer registry.Unlock()
	if in := registry.open[key]; in != nil {
		if in.setup != setup {
			return nil, fault.New(fault.Conflict, "database.Open", "the file of database %s is open already with other settings", cfg.Name)
		}
		in.users++
		return in, nil
	}
	in := &instance{key: key, setup: setup, users: 1}
	if in.spill, err = newSpill(cfg.TempDir); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "database.Open", "no folder for temporary files")
	}
	if err := in.openLocked(cfg); err != nil {
		duck.Close(&in.db)
		err = errors.Join(err, in.spill.remove())
		return nil, fault.Wrap(err, fault.Internal, "database.Open", "database %s cannot be opened", cfg.Name)
	}
	registry.open[key] = in
	return in, nil
}

// release gives an instance back; the last one closes it.
func (in *instance) release() error {
	registry.Lock()
	defer registry.Unlock()
	if in.users--; in.users > 0 {
		return nil
	}
	delete(registry.open, in.key)
	duck.Close(&in.db)
	return in.spill.remove()
}

// openLocked opens the file and locks it down. The order counts: what needs access comes before access ends, and the
// configuration is locked last.
func (in *instance) openLocked(cfg Config) error {
	mode := "READ_ONLY"
	if cfg.Writable {
		mode = "READ_WRITE"
	}
	var err error
	in.db, err = openInstance(in.key, map[string]string{
		"access_mode":               mode,
		"allow_unsigned_extensions": "false",
		"memory_limit":              cfg.MemoryLimit,
		"threads":                   strconv.Itoa(cfg.Threads),
	})
	if err != nil {
		return err
	}
	c, err := connect(in.db)
	if err != nil {
		return err
	}
	defer c.close()
	roots := make([]string, len(cfg.LakeRoots))
	for i, r := range cfg.LakeRoots {
		if r, err = filepath.Abs(r); err != nil {
			return err
		}
		roots[i] = quoteText(r + string(filepath.Separator))
	}
	for _, s := range append([]string{
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET allow_community_extensions = false",
		"SET allow_persistent_secrets = false",
		"SET GLOBAL TimeZone = " + quoteText(cfg.SessionTimezone),
		"SET GLOBAL arrow_lossless_conversion = true",
		"SET temp_directory = " + quoteText(in.spill.dir),
		"SET max_temp_directory_size = '16GB'",
		"SET allowed_paths = [" + quoteText(in.key) + ", " + quoteText(in.key+".wal") + "]",
		"SET allowed_directories = [" + strings.Join(roots, ", ") + "]",
	}, lockStatements...) {
		if err := c.exec(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// lockStatements end every instance's set-up.
var lockStatements = []string{
	"SET enable_external_access = false",
	"SET lock_configuration = true",
}
