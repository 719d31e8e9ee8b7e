package lakecopy

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"sluice/store"
)

// sweepAge is how old a stage must be that no run of ours knows: it may be that of another server on the same lake.
const sweepAge = 24 * time.Hour

// recover settles the runs that an earlier process left unsettled. It may be interrupted and run again: each step can be
// done twice.
//
//	record says                  is done
//	running or aborted           files of the run that became visible are removed, the stage too; aborted
//	committed, with replaced     the replaced files are deleted, the stage removed; committed
//
// Files are removed by the exact names in the record, and new ones only if they carry the run's id.
func (s *Service) recover(ctx context.Context) error {
	runs, err := s.journal.UnsettledRuns(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, run := range runs {
		lake := s.lakes[run.Connection]
		if lake == nil || lake.dir == nil {
			continue // its connection is out of the settings; it waits until it is back
		}
		if err := s.settleRun(ctx, lake, run); err != nil {
			errs = append(errs, fmt.Errorf("run %s: %w", run.ID, err))
		}
	}
	for _, lake := range s.lakes {
		if lake.dir != nil {
			errs = append(errs, s.sweep(lake))
		}
	}
	return errors.Join(errs...)
}

func (s *Service) settleRun(ctx context.Context, lake *lake, run store.Run) error {
	if !validID(run.ID) {
		return errors.New("its id is damaged")
	}
	doomed := run.Replaced
	if run.State != store.Committed {
		doomed = nil
		for _, name := range run.Added {
			if strings.HasPrefix(path.Base(name), "part-"+run.ID+"-") {
				doomed = append(doomed, name)
			}
		}
	}
	if err := removeFiles(lake.dir, doomed); err != nil {
		return err
	}
	if err := missing(lake.dir.RemoveAll(stageFolder(run.ID))); err != nil {
		return err
	}
	if run.State == store.Running {
		run.State, run.Kind, run.EndedAt = store.Aborted, string(KindIO), s.now()
		run.Error = "the server stopped while this COPY ran; nothing was published"
		run.Rows, run.Files, run.Bytes, run.Partitions = 0, 0, 0, 0
	}
	run.Added, run.Replaced = nil, nil
	return s.journal.UpdateRun(ctx, run)
}

// sweep removes old stages that no unsettled run owns.
func (s *Service) sweep(lake *lake) error {
	stage := path.Join(ownFolder, "stage")
	exists, err := realPath(lake.dir, stage)
	if err != nil || !exists {
		return err
	}
	entries, err := lake.dir.ReadDir(stage)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || !validID(entry.Name()) || s.now().Sub(info.ModTime()) < sweepAge {
			continue
		}
		if err := lake.dir.RemoveAll(path.Join(stage, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
