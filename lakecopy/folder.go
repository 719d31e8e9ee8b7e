package lakecopy

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
)

// folder is the little that a run needs of a file system, below one root and never outside of it. Names are relative,
// with slashes. Tests put a failing one in its place and cut the power at every step.
type folder interface {
	Mkdir(name string) error                          // fails if it exists
	Create(name string) (stagedFile, error)           // fails if it exists
	Open(name string) (parquet.ReaderAtSeeker, error) // the caller closes it when it is an io.Closer
	Link(old, new string) error                       // a second name for a file; fails if new exists
	Remove(name string) error                         // a file or an empty folder
	RemoveAll(name string) error                      // no error when there is nothing
	ReadDir(name string) ([]fs.DirEntry, error)       // sorted by name
	Lstat(name string) (fs.FileInfo, error)           // does not follow a link
	SyncDir(name string) error                        // makes the folder's entries durable
	Close() error
}

// stagedFile is a file being written.
type stagedFile interface {
	io.Writer
	Sync() error
	Close() error
}

// rootFolder is a folder on os.Root, so that no link leads out of it.
type rootFolder struct{ root *os.Root }

func openFolder(dir string) (folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return rootFolder{root}, nil
}

func (f rootFolder) Mkdir(name string) error {
	// Readers of the lake are other programs of other users; the server's own folder is nobody else's business.
	mode := fs.FileMode(0o755)
	if name == ownFolder || strings.HasPrefix(name, ownFolder+"/") {
		mode = 0o700
	}
	return f.root.Mkdir(name, mode)
}

func (f rootFolder) Create(name string) (stagedFile, error) {
	return f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
}

func (f rootFolder) Open(name string) (parquet.ReaderAtSeeker, error) { return f.root.Open(name) }
func (f rootFolder) Link(old, new string) error                       { return f.root.Link(old, new) }
func (f rootFolder) Remove(name string) error                         { return f.root.Remove(name) }
func (f rootFolder) RemoveAll(name string) error                      { return f.root.RemoveAll(name) }
func (f rootFolder) Lstat(name string) (fs.FileInfo, error)           { return f.root.Lstat(name) }
func (f rootFolder) Close() error                                     { return f.root.Close() }

func (f rootFolder) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(f.root.FS(), name)
}

func (f rootFolder) SyncDir(name string) error {
	dir, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// makeDirs makes a folder and those above it, each made durable in its parent, and returns those that it made, outermost
// first, also when it fails half-way. A link or a file in the way is refused: what is written must lie where its name says.
func makeDirs(f folder, name string) (made []string, err error) {
	parent := "."
	for segment := range strings.SplitSeq(name, "/") {
		dir := path.Join(parent, segment)
		switch err := f.Mkdir(dir); {
		case err == nil:
			made = append(made, dir)
			if err := f.SyncDir(parent); err != nil {
				return made, err
			}
		case errors.Is(err, fs.ErrExist):
			if err := realDir(f, dir); err != nil {
				return made, err
			}
		default:
			return made, err
		}
		parent = dir
	}
	return made, nil
}

func realDir(f folder, name string) error {
	info, err := f.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fail(KindPath, "%s is a link or a file, not a folder", name)
	}
	return nil
}

// realPath checks that every existing segment of a path is a real folder; false when the whole does not exist.
func realPath(f folder, name string) (bool, error) {
	dir := "."
	for segment := range strings.SplitSeq(name, "/") {
		dir = path.Join(dir, segment)
		if err := realDir(f, dir); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// missing turns "there was nothing" into success, for work that may be done twice.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
