package main

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"

	"sluice/config"
	"sluice/models"
	"sluice/models/registry"
)

// sources is the gateway's registry: it knows from the settings where a model comes from, and which registries may be asked.
type sources struct {
	store *models.Store

	mu         sync.Mutex // of what SIGHUP replaces
	catalogue  models.Catalogue
	registries map[string]config.Registry
	client     *registry.Client
}

func newSources(store *models.Store, c models.Catalogue, registries map[string]config.Registry) (*sources, error) {
	s := &sources{store: store}
	return s, s.set(c, registries)
}

// set takes the registries of the catalogue and of the settings from now on. The client stays where they are the same: pulls
// share its work.
func (s *sources) set(c models.Catalogue, registries map[string]config.Registry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil || !slices.Equal(c.Registries, s.catalogue.Registries) || !maps.Equal(registries, s.registries) {
		cfg := registry.Config{Store: s.store, Hosts: slices.Clone(c.Registries), Credentials: map[string]registry.Credential{}}
		for _, host := range slices.Sorted(maps.Keys(registries)) {
			r := registries[host]
			if !slices.Contains(cfg.Hosts, host) {
				cfg.Hosts = append(cfg.Hosts, host)
			}
			if r.Insecure {
				cfg.Insecure = append(cfg.Insecure, host)
			}
			if r.User != "" || r.Token != "" {
				cfg.Credentials[host] = registry.Credential{User: r.User, Password: r.Password, Token: r.Token}
			}
		}
		client, err := registry.New(cfg)
		if err != nil {
			return err
		}
		s.client = client
	}
	s.catalogue, s.registries = c, registries
	return nil
}

// resolve completes a transfer. Where the settings name a registry as insecure, the request need not say so again.
func (s *sources) resolve(t registry.Transfer) (*registry.Client, registry.Transfer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.catalogue.Entry(t.Name); e != nil && t.Source == "" {
		t.Source = e.Source
	}
	from := t.Source
	if from == "" {
		from = t.Name
	}
	host := model.ParseNameBare(from).Host
	if host == "" && len(s.catalogue.Registries) > 0 {
		host = s.catalogue.Registries[0]
	}
	t.Insecure = t.Insecure || s.registries[host].Insecure
	return s.client, t
}

// Pull gets a model, from where the catalogue says.
func (s *sources) Pull(ctx context.Context, t registry.Transfer, tell func(api.ProgressResponse)) error {
	client, t := s.resolve(t)
	return client.Pull(ctx, t, tell)
}

// Push puts a model where its name says: the catalogue tells where a model comes from, which is not where it may be put.
func (s *sources) Push(ctx context.Context, t registry.Transfer, tell func(api.ProgressResponse)) error {
	if t.Source == "" {
		t.Source = t.Name
	}
	client, t := s.resolve(t)
	return client.Push(ctx, t, tell)
}
