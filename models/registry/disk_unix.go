//go:build unix

package registry

import (
	"errors"
	"os"
	"syscall"
)

// freeBytes is what may still be written below a folder.
func freeBytes(dir string) (uint64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil
}

// allocated is what a file with holes takes on the disk.
func allocated(fi os.FileInfo) int64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return 0
}

// lock takes a file for this process alone, until it is closed. It tells whether that was possible.
func lock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// noFollow makes an open fail with isLink on a link, whose target would be another's file.
const noFollow = syscall.O_NOFOLLOW

func isLink(err error) bool { return errors.Is(err, syscall.ELOOP) }

// tooLarge tells that the disk's format, or a limit on this process, does not allow a file of that size.
func tooLarge(err error) bool { return errors.Is(err, syscall.EFBIG) }

// why gives the reason for an error of the disk without the paths in it.
func why(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return "it fails"
}

func noSpace(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
