package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/access"
	"sluice/agent"
	"sluice/fault"
	"sluice/gateway"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler"
	"sluice/store"
)

// bootstrapID is the id of the key that the first start makes, or that SLUICE_ADMIN_KEY sets.
const bootstrapID = "bootstrap"

// bootstrap makes the first admin key. A given one takes the place of the old bootstrap key; without one, a key is made
// and shown only when there is none at all.
func bootstrap(ctx context.Context, s *store.Store, given string, out io.Writer) error {
	admin := store.Key{ID: bootstrapID, Owner: access.BootstrapOwner, Name: "bootstrap", Role: access.Admin.String(), CreatedAt: time.Now().UTC()}
	if given != "" {
		if len(given) < 20 {
			return usageError{errors.New("SLUICE_ADMIN_KEY: too short for a secret; use 20 characters or more")}
		}
		admin.Hash = store.HashSecret(given)
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
	if err := s.InsertKey(ctx, admin); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "admin key (shown this once): %s\n", secret)
	return err
}

// keys is the gateway's view of the stored keys.
type keys struct {
	store *store.Store
	now   func() time.Time
}

// Principal looks a bearer up by its hash: nothing is compared byte by byte, so timing tells nothing.
func (k *keys) Principal(ctx context.Context, bearer string) (access.Principal, error) {
	key, err := k.store.KeyByHash(ctx, store.HashSecret(bearer))
	if err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			err = fault.New(fault.Unauthenticated, "keys", "this key is not known; leave the Authorization header away or use a valid one")
		}
		return access.Principal{}, err
	}
	return key.Principal(), nil
}

// Create makes a key for the one who asks.
func (k *keys) Create(ctx context.Context, by access.Principal, n gateway.NewKey) (id, secret string, err error) {
	role, err := access.ParseRole(n.Role)
	if err != nil {
		return "", "", err
	}
	if !by.Role.AtLeast(role) {
		return "", "", fault.New(fault.Denied, "keys", "a key cannot have a higher role than its owner")
	}
	if strings.TrimSpace(n.Name) == "" {
		return "", "", fault.New(fault.Invalid, "keys", "name is missing")
	}
	secret, hash := store.NewSecret()
	id = "key_" + rand.Text()
	return id, secret, k.store.InsertKey(ctx, store.Key{
		ID: id, Hash: hash, Owner: by.Owner, Name: n.Name, Role: role.String(), Agent: n.Agent,
		Databases: n.Databases, Tables: n.Tables, Models: n.Models, CreatedAt: k.now().UTC(),
	})
}

// List gives all keys without their secrets.
func (k *keys) List(ctx context.Context) ([]gateway.KeyInfo, error) {
	all, err := k.store.Keys(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]gateway.KeyInfo, 0, len(all))
	for _, key := range all {
		out = append(out, gateway.KeyInfo{
			ID: key.ID, Owner: key.Owner, Name: key.Name, Role: key.Role, Agent: key.Agent, Databases: key.Databases,
			Tables: key.Tables, Models: key.Models, CreatedAt: key.CreatedAt.Format(time.RFC3339),
		})
	}
	return out, nil
}

// Delete removes a key; it is refused at the next request.
func (k *keys) Delete(ctx context.Context, id string) error {
	found, err := k.store.DeleteKey(ctx, id)
	if err == nil && !found {
		return fault.New(fault.NotFound, "keys", "no key with this id")
	}
	return err
}

// recorder keeps each ask for the Learning Loop.
func recorder(s *store.Store) func(context.Context, agent.Record) error {
	return func(ctx context.Context, r agent.Record) error {
		return s.InsertAsk(ctx, store.Ask{
			ID: r.ID, KeyID: r.KeyID, Owner: r.Owner, Database: r.Database, Question: r.Question, WrittenSQL: r.Written,
			ExecutedSQL: r.SQL, Outcome: string(r.Outcome), Reason: r.Reason, Model: r.Model, ModelCalls: r.ModelCalls,
			Duration: r.Took, CreatedAt: r.At,
		})
	}
}

// agentOwner is for whom the agent's prompts are computed: who asked is not known here. The gateway's words are longer.
const agentOwner = "agent"

// completer gives the agent its model: the scheduler's lease, the model's own prompt template.
type completer struct {
	models    *models.Store
	scheduler *scheduler.Scheduler
}

func (c *completer) Complete(ctx context.Context, q agent.Completion) (string, error) {
	m, err := c.models.Get(q.Model)
	if err != nil {
		return "", err
	}
	messages := make([]api.Message, 0, len(q.Messages))
	for _, msg := range q.Messages {
		messages = append(messages, api.Message{Role: msg.Role, Content: msg.Content})
	}
	prompt, err := m.Prompt(models.Conversation{Messages: messages})
	if err != nil {
		return "", err
	}
	request := map[string]any{"temperature": q.Temperature, "seed": q.Seed, "num_predict": q.MaxTokens, "num_ctx": q.NumCtx}
	if q.MaxTokens <= 0 {
		request["num_predict"] = -1 // no limit of the asker's, and so none of the Modelfile's either
	}
	opts, _, err := m.Options(request)
	if err != nil {
		return "", err
	}
	// Besides the Modelfile's own, without which many a model would write the next turn too.
	opts.Stop = append(slices.Clone(opts.Stop), q.Stop...)
	lease, err := c.scheduler.Lease(ctx, scheduler.Want{Model: m, Options: opts})
	if err != nil {
		return "", err
	}
	defer lease.Release()
	var text strings.Builder
	// A schema that does not fit is refused, not truncated: cut, it would be a question about other tables.
	err = lease.Generate(ctx, scheduler.Completion{Prompt: prompt.Text, Owner: agentOwner, Options: opts}, func(ch runner.Chunk) error {
		text.WriteString(ch.Text)
		return nil
	})
	return text.String(), err
}
