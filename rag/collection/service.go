package collection

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sluice/access"
	"sluice/fault"
)

// Config of a Service.
type Config struct {
	Store    Store    // required
	Embedder Embedder // required
	Model    string   // that embeds; required
	Limits   Limits
	Now      func() time.Time
	NewID    func() string // of documents
	Log      *slog.Logger
	Look     time.Duration // how often Run looks whether the model has changed; default 1m
}

func (c Config) withDefaults() Config {
	c.Limits = c.Limits.withDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = func() string { return "doc_" + rand.Text() }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Look == 0 {
		c.Look = time.Minute
	}
	return c
}

func (c Config) validate() error {
	var problems []error
	if c.Store == nil {
		problems = append(problems, errors.New("Store is required"))
	}
	if c.Embedder == nil {
		problems = append(problems, errors.New("Embedder is required"))
	}
	if c.Model == "" {
		problems = append(problems, errors.New("Model is required"))
	}
	return errors.Join(problems...)
}

// Service is collections with rights. Its methods may be called by any goroutine.
type Service struct {
	cfg  Config
	kick chan struct{} // Run looks now
}

// New makes a service. Run must be running for a change of the model to be followed.
func New(cfg Config) (*Service, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("collection: %w", err)
	}
	return &Service{cfg: cfg, kick: make(chan struct{}, 1)}, nil
}

// Close closes the store. Run must have returned.
func (s *Service) Close() error { return s.cfg.Store.Close() }

// Model is the configured embedding model.
func (s *Service) Model() string { return s.cfg.Model }

// look has Run look soon whether vectors are missing.
func (s *Service) look() {
	select {
	case s.kick <- struct{}{}:
	default: // it will
	}
}

// List gives the collections that somebody may read, by name, with their counts.
func (s *Service) List(ctx context.Context, who access.Principal) ([]Collection, error) {
	all, err := s.readable(ctx, who)
	for i := 0; err == nil && i < len(all); i++ {
		all[i], err = s.cfg.Store.Count(ctx, all[i])
	}
	return all, err
}

// readable gives the collections that somebody may read, without counts.
func (s *Service) readable(ctx context.Context, who access.Principal) ([]Collection, error) {
	all, err := s.cfg.Store.Collections(ctx)
	if err != nil {
		return nil, err
	}
	seen := []Collection{}
	for _, c := range all {
		if may(who, c, false) {
			seen = append(seen, c)
		}
	}
	return seen, nil
}

// Get gives one collection, with its counts. One that may not be read is NotFound, like one that is not there.
func (s *Service) Get(ctx context.Context, who access.Principal, name string) (Collection, error) {
	c, err := s.get(ctx, who, name)
	if err != nil {
		return Collection{}, err
	}
	return s.cfg.Store.Count(ctx, c)
}

func (s *Service) get(ctx context.Context, who access.Principal, name string) (Collection, error) {
	if checkName(name) != nil {
		return Collection{}, unknown(name)
	}
	c, err := s.cfg.Store.Collection(ctx, name)
	if err != nil && fault.CodeOf(err) == fault.NotFound || err == nil && !may(who, c, false) {
		return Collection{}, unknown(name)
	}
	return c, err
}

// writable is get for who wants to change it: Denied when it may only be read.
func (s *Service) writable(ctx context.Context, who access.Principal, name string) (Collection, error) {
	c, err := s.get(ctx, who, name)
	if err == nil && !may(who, c, true) {
		return Collection{}, noWrite(who, name)
	}
	return c, err
}

// MayChange says why somebody may not change a collection: NotFound when they may not read it either.
func (s *Service) MayChange(ctx context.Context, who access.Principal, name string) error {
	_, err := s.writable(ctx, who, name)
	return err
}

// MayWrite says whether somebody may change a collection that they may read.
func (s *Service) MayWrite(who access.Principal, c Collection) bool { return may(who, c, true) }

// MayCreate says why a collection cannot be made: by its name, by who asks, or because there are too many.
func (s *Service) MayCreate(ctx context.Context, who access.Principal, c Collection) error {
	const op = "collection.MayCreate"
	if err := checkName(c.Name); err != nil {
		return err
	}
	if err := checkLine("description", c.Description, maxDescription); err != nil {
		return err
	}
	if !mayCreate(who, c.Name) {
		e := &fault.Error{Code: fault.Denied, Op: op, Kind: "auth", Msg: "you may not make a collection of this name", Hint: "it takes the role read_write, and a key without grants for other collections"}
		if who.Agent {
			e.Msg, e.Hint = "an agent's key reads collections and makes none", ""
		}
		return e
	}
	if c.Database != "" && !access.MayDatabase(who, c.Database) {
		return fault.New(fault.NotFound, op, "there is no database '%s' that you may read", cut(c.Database, 63))
	}
	all, err := s.cfg.Store.Collections(ctx)
	if err != nil {
		return err
	}
	if len(all) >= s.cfg.Limits.Collections {
		return fault.New(fault.TooLarge, op, "there are %d collections, which is as many as this server keeps: delete one first", len(all))
	}
	return nil
}

// Create makes an empty collection, which belongs to the user behind who. It takes the role read_write, and no agent. That
// a name is taken is told to everybody who may create one: names are one space.
func (s *Service) Create(ctx context.Context, who access.Principal, c Collection) (Collection, error) {
	if err := s.MayCreate(ctx, who, c); err != nil {
		return Collection{}, err
	}
	c = Collection{Name: c.Name, Owner: who.Owner, Database: c.Database, Description: c.Description, CreatedAt: s.cfg.Now()}
	if err := s.cfg.Store.Create(ctx, c); err != nil {
		return Collection{}, err
	}
	return s.cfg.Store.Collection(ctx, c.Name)
}

// Delete removes a collection with all its documents.
func (s *Service) Delete(ctx context.Context, who access.Principal, name string) error {
	c, err := s.writable(ctx, who, name)
	if err != nil {
		return err
	}
	return s.cfg.Store.Delete(ctx, c.ID)
}

// Exists says whether there is a collection of a name. It is for who gives grants, an admin.
func (s *Service) Exists(ctx context.Context, name string) (bool, error) {
	_, err := s.cfg.Store.Collection(ctx, name)
	if err != nil && fault.CodeOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

// Disown takes a deleted user's collections from their name, so that nobody who gets that name later has them. Admins and
// those with a grant keep what they may.
func (s *Service) Disown(ctx context.Context, user string) error {
	_, err := s.cfg.Store.Disown(ctx, user)
	return err
}
