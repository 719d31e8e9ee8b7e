package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/models"
	"sluice/runner"
)

// fitTimeout bounds one load, which takes about a second.
const fitTimeout = 5 * time.Minute

// fitLoad starts a runner, loads a model and tells what it allocated.
func fitLoad(ctx context.Context, binary string, req runner.LoadRequest) ([]runner.DeviceMemory, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fitTimeout, fmt.Errorf("the load took over %s", fitTimeout))
	defer cancel()
	p, err := runner.Start(ctx, runner.Config{Binary: binary})
	if err != nil {
		return nil, err
	}
	report, err := p.Load(ctx, req, nil)
	if stop := p.Stop(context.WithoutCancel(ctx)); err == nil {
		err = stop
	}
	return report.Memory, err
}

// fitModels takes all models of a folder into a store of its own: each GGUF file by a link, each folder of safetensors converted.
func fitModels(ctx context.Context, dir string) (list []*models.Model, done func(), err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	temp, err := os.MkdirTemp("", "sluice-fit-")
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = os.RemoveAll(temp) }
	defer func() {
		if err != nil {
			done()
		}
	}()
	store, err := models.OpenStore(temp)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name := strings.ToLower(strings.TrimSuffix(e.Name(), ".gguf"))
		files := map[string]string{}
		switch {
		case e.IsDir():
			err = fitFolder(ctx, store, filepath.Join(dir, e.Name()), files)
		case strings.HasSuffix(e.Name(), ".gguf"):
			files[e.Name()], err = store.LinkBlob(ctx, filepath.Join(dir, e.Name()))
		default:
			continue
		}
		if err == nil {
			err = store.Create(ctx, models.CreateRequest{Name: name, Files: files}, nil)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		m, err := store.Get(name)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("there are no models in %s", dir)
	}
	return list, done, nil
}

// fitFolder takes the files of a folder of safetensors into the store, by their relative names.
func fitFolder(ctx context.Context, store *models.Store, dir string, files map[string]string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err == nil {
			files[filepath.ToSlash(rel)], err = store.LinkBlob(ctx, path)
		}
		return err
	})
}
