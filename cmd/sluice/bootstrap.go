package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sluice/access"
	"sluice/store"
)

// bootstrapID is the id of the key that the first start makes, or that SLUICE_ADMIN_KEY sets.
const bootstrapID = "bootstrap"

// bootstrap makes the first admin key. A given one takes the place of the old bootstrap key; without one, a key is made
// and shown only when there is none at all.
func bootstrap(ctx context.Context, s *store.Store, ledger *store.Ledger, given string, out io.Writer) error {
	admin := store.Key{Key: access.Key{ID: bootstrapID, Owner: access.BootstrapOwner, Name: "bootstrap", Role: access.Admin, CreatedAt: time.Now().UTC()}}
	if given != "" {
		if len(given) < 20 {
			return usageError{errors.New("SLUICE_ADMIN_KEY: too short for a secret; use 20 characters or more")}
		}
		admin.Hash = store.HashSecret(given)
		if before, err := s.KeyByHash(ctx, admin.Hash); err == nil && before.ID == bootstrapID {
			return nil // the same as at the last start: what was granted to it stays
		}
		if err := recordBootstrap(ctx, ledger, "SLUICE_ADMIN_KEY"); err != nil {
			return err
		}
		if _, err := s.DeleteKey(ctx, bootstrapID); err != nil {
			return err
		}
		return s.InsertKey(ctx, admin)
	}
	n, err := s.CountKeys(ctx)
	if err != nil || n > 0 {
		return err
	}
	secret, hash := store.NewSecret()
	admin.Hash = hash
	if err := recordBootstrap(ctx, ledger, "the first start"); err != nil {
		return err
	}
	if err := s.InsertKey(ctx, admin); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "admin key (shown this once): %s\n", secret)
	return err
}

// recordBootstrap puts the key that is about to be made into the ledger.
func recordBootstrap(ctx context.Context, ledger *store.Ledger, by string) error {
	return ledger.Append(ctx, store.Event{Kind: "key.create", Details: map[string]any{"key": bootstrapID, "key_owner": access.BootstrapOwner,
		"role": access.Admin.String(), "made_by": by}})
}
