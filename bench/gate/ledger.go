package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"sluice/bench/beside"
	"sluice/store"
)

// entries is how many the ledger has.
const entries = 1_000_000

// ledgerVerify is the time of Verify over that of one SHA-256 over the bytes of all entries, which are in memory then. Verify reads
// them from the file, hashes each and compares the chain.
func ledgerVerify(ctx context.Context, b *beside.Bench) (float64, error) {
	s, err := store.Open(ctx, filepath.Join(b.Dir, "control.db"))
	if err != nil {
		return 0, err
	}
	defer s.Close()
	ledger, err := s.OpenLedger(ctx, store.LedgerConfig{Head: filepath.Join(b.Dir, "ledger.head"), Key: bytes.Repeat([]byte("k"), 32)})
	if err != nil {
		return 0, err
	}
	defer ledger.Close()
	begin := time.Now()
	if err := fillLedger(ctx, ledger); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	fmt.Printf("  %d entries appended by %d callers in %.1f s, %.0f a second, each on the disk before its caller went on\n", entries, callers, took.Seconds(), entries/took.Seconds())
	text, err := allBytes(ctx, ledger)
	if err != nil {
		return 0, err
	}
	var verify, hash []float64
	for range b.Pairs {
		begin := time.Now()
		v, err := ledger.Verify(ctx)
		if err != nil {
			return 0, err
		}
		verify = append(verify, time.Since(begin).Seconds())
		if v.Status != store.Intact || v.Entries != entries {
			return 0, fmt.Errorf("the ledger is %s with %d entries: %s", v.Status, v.Entries, v.Reason)
		}
		begin = time.Now()
		sum := sha256.Sum256(text)
		hash = append(hash, time.Since(begin).Seconds())
		if sum == [sha256.Size]byte{} {
			return 0, errors.New("no hash")
		}
	}
	return beside.Show("verify", "s", verify) / beside.Show(fmt.Sprintf("SHA-256 of %.0f MB", float64(len(text))/1e6), "s", hash), nil
}

// callers append at the same time.
const callers = 256

// fillLedger appends until there are as many entries as wanted; the ledger's own first is one of them. They are of the kinds and
// lengths that a server writes.
func fillLedger(ctx context.Context, ledger *store.Ledger) error {
	todo := make(chan int)
	errs := make(chan error, callers)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			var failed error
			for i := range todo {
				if failed == nil {
					failed = ledger.Append(ctx, event(i))
				}
			}
			errs <- failed
		})
	}
	for i := range entries - 1 {
		todo <- i
	}
	close(todo)
	wg.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

func event(i int) store.Event {
	e := store.Event{Principal: fmt.Sprintf("key_%026d", i%50), RequestID: fmt.Sprintf("%026d", i)}
	switch i % 4 {
	case 0:
		e.Kind, e.Details = "ask.run", map[string]any{"database": "shop", "owner": "ann", "sql": fmt.Sprintf("SELECT region, SUM(amount) AS total FROM main.sale AS s "+
			"JOIN main.item AS i ON i.id = s.item_id WHERE s.sold >= '2026-01-01' AND i.price > %d GROUP BY region ORDER BY total DESC LIMIT 10", i)}
	case 1:
		e.Kind, e.Details = "ask.end", map[string]any{"ask": fmt.Sprintf("ask_%026d", i), "attempts": 1, "database": "shop", "model": "qwen2.5-coder:7b", "outcome": "answered", "owner": "ann", "rows": 10}
	case 2:
		e.Kind, e.Details = "auth.login", map[string]any{"address": "10.1.2.3", "owner": "ann"}
	default:
		e.Kind, e.Details = "copy.start", map[string]any{"connection": "local", "database": "shop", "job": fmt.Sprintf("%026d", i), "owner": "ann", "path": "exports/sales",
			"run": fmt.Sprintf("%026d", i), "statement": "COPY (SELECT id, sold, region FROM sale) TO LAKE 'exports/sales' WITH (CONNECTION = 'local', PARTITION_BY = (region))"}
	}
	return e
}

// allBytes are the bytes of all entries that their hashes cover.
func allBytes(ctx context.Context, ledger *store.Ledger) ([]byte, error) {
	var text []byte
	before := int64(0)
	for {
		list, err := ledger.Entries(ctx, store.EntryFilter{Before: before, Limit: 10_000})
		if err != nil || len(list) == 0 {
			return text, err
		}
		for _, e := range list {
			text = e.AppendBytes(text)
			before = e.Seq
		}
		if before == 1 {
			return text, nil
		}
	}
}
