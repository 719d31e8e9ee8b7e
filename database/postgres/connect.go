package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"sluice/fault"
)

// ownSettings are the session settings that a URL may not set, because the gate and the decoders count on them.
var ownSettings = []string{
	"client_encoding", "datestyle", "default_transaction_deferrable", "default_transaction_isolation", "default_transaction_read_only",
	"extra_float_digits", "idle_in_transaction_session_timeout", "intervalstyle", "lock_timeout", "row_security", "search_path",
	"standard_conforming_strings", "statement_timeout", "timezone", "transaction_read_only", "bytea_output", "xmlbinary",
}

// parseURL reads the URL. An error never shows it: a malformed one may have the password anywhere.
func (e *Engine) parseURL() (*pgconn.Config, error) {
	url := e.cfg.URL
	bad := func(why, hint string) error {
		err := fault.New(fault.Invalid, "postgres.Open", "the url of database %s %s", e.cfg.Name, why)
		err.Hint = hint
		return err
	}
	const form = "postgres://user:password@host:5432/database?sslmode=require, with % and two hex digits for special characters in the password"
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return nil, bad("does not begin with postgres://", "write it as "+form)
	}
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, bad("cannot be read", "write it as "+form)
	}
	for name := range cfg.RuntimeParams {
		if lower := strings.ToLower(name); slices.Contains(ownSettings, lower) {
			return nil, bad("sets "+lower+", which is set for every statement", "leave it out; schemas and session_timezone have settings of their own")
		}
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = e.cfg.ConnectTimeout
		dialer := &net.Dialer{Timeout: e.cfg.ConnectTimeout, KeepAlive: time.Minute}
		cfg.DialFunc = dialer.DialContext
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "sluice"
	}
	cfg.MaxProtocolMessageBodyLen = e.cfg.MaxRowBytes
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler { return &canceller{engine: e, conn: c} }
	return cfg, nil
}

// dial opens a connection whose session has the pinned settings as defaults, which a reset goes back to. A pooler that
// refuses settings at connecting (08P01) gets none: each transaction pins them once more.
func (e *Engine) dial(ctx context.Context) (*conn, error) {
	plain := e.plain.Load()
	pg, err := e.dialOnce(ctx, plain)
	var refused *pgconn.PgError
	if err != nil && !plain && errors.As(err, &refused) && refused.Code == "08P01" {
		if pg, err = e.dialOnce(ctx, true); err == nil {
			e.plain.Store(true)
		}
	}
	if err != nil {
		return nil, e.unreachable(ctx, err)
	}
	return &conn{pg: pg, born: time.Now(), types: map[uint32]pgType{}}, nil
}

func (e *Engine) dialOnce(ctx context.Context, plain bool) (*pgconn.PgConn, error) {
	cfg := e.connect.Copy()
	cfg.RuntimeParams["client_encoding"] = "UTF8"
	if !plain {
		for _, s := range e.pins(e.cfg.StatementTimeout) {
			cfg.RuntimeParams[s.name] = s.value
		}
		cfg.RuntimeParams["default_transaction_read_only"] = "on"
	}
	return pgconn.ConnectConfig(ctx, cfg)
}

// unreachable classifies a failure to connect. Whoever asks may try again; the reason is told as a class only, because the
// server's own text has the names of its users, databases and hosts.
func (e *Engine) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return e.over(ctx, "postgres.connect")
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && strings.HasPrefix(refused.Code, "22") {
		return fault.Wrap(scrubbed(err), fault.Conflict, "postgres.connect", "the database %s does not take a setting of the session: %s", e.cfg.Name, refused.Message)
	}
	f := fault.Wrap(scrubbed(err), fault.Busy, "postgres.connect", "the database %s cannot be reached: %s", e.cfg.Name, connectClass(err))
	f.RetryAfter = 5 * time.Second
	return f
}

// scrubbed is a connection error for the log: the driver's text without the type that holds the password.
func scrubbed(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return fmt.Errorf("%s (%s)", refused.Message, refused.Code)
	}
	return errors.New(err.Error())
}

func connectClass(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		switch {
		case strings.HasPrefix(refused.Code, "28"):
			return "authentication failed"
		case refused.Code == "3D000":
			return "the server has no such database"
		case refused.Code == "42501":
			return "the role may not connect to it"
		case strings.HasPrefix(refused.Code, "53"):
			return "the server has no connection left"
		case strings.HasPrefix(refused.Code, "57P"):
			return "the server is starting or stopping"
		}
		return "the server refused the connection (" + refused.Code + ")"
	}
	var (
		dns       *net.DNSError
		record    tls.RecordHeaderError
		cert      *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		alert     tls.AlertError
		network   net.Error
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "its host is not known"
	case errors.As(err, &record), errors.As(err, &cert), errors.As(err, &authority), errors.As(err, &host), errors.As(err, &alert),
		strings.Contains(err.Error(), "tls"), strings.Contains(err.Error(), "refused TLS"):
		return "TLS failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "it did not answer in time"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to its host"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the connection was closed"
	case strings.Contains(err.Error(), "password") || strings.Contains(err.Error(), "SASL") || strings.Contains(err.Error(), "auth"):
		return "authentication failed"
	}
	return "the connection failed"
}

// canceller cancels what a connection does when its context ends: the reader is woken at once, and the server is told even
// when nobody reads at that moment.
type canceller struct {
	engine *Engine
	conn   *pgconn.PgConn
}

func (c *canceller) HandleCancel(context.Context) {
	if c.conn.PID() == 0 {
		return // still connecting
	}
	c.engine.work.Add(1) // a use is running, so the count is not zero
	go func() {
		defer c.engine.work.Done()
		cancelOnServer(c.conn)
	}()
	_ = c.conn.Conn().SetDeadline(time.Unix(1, 0))
}

func (c *canceller) HandleUnwatchAfterCancel() { _ = c.conn.Conn().SetDeadline(time.Time{}) }

// cancelOnServer asks the server to stop what a connection runs. What is not answered in time is left to the server's own
// timeouts.
func cancelOnServer(c *pgconn.PgConn) {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	_ = c.CancelRequest(ctx)
}
