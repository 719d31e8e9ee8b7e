package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice/fault"
)

const (
	maxBackoff    = 30 * time.Second
	maxRetryAfter = 2 * time.Minute
	busyAgain     = 30 * time.Second // what clients are told when a registry cannot be reached
)

// errStalled is the reason why a connection was given up.
var errStalled = errors.New("no byte came for too long")

// statusError is an answer that is not what was asked for.
type statusError struct {
	status     int
	retryAfter time.Duration
	text       string // what the registry says
}

// Error gives the status and what the registry said.
func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("status %d %s", e.status, e.text))
}

func (e *statusError) temporary() bool {
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.status >= 500 && e.status != http.StatusNotImplemented
}

// final tells that another try would end the same way.
func final(err error) bool {
	var status *statusError
	var classified *fault.Error
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &status):
		return !status.temporary()
	case errors.As(err, &classified), errors.Is(err, errNoRange), errors.Is(err, errChanged), errors.Is(err, errDisk), errors.Is(err, errUploadLost):
		return true
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid), errors.As(err, &record), plainAnswer(err):
		return true
	}
	return false
}

// plainAnswer tells that a server on which TLS was tried speaks plain HTTP. net/http has no type for it.
func plainAnswer(err error) bool {
	return err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// again runs try until it succeeds, fails for good, or has failed cfg.Tries times in a row without progress.
func (c *Client) again(ctx context.Context, try func() (progress bool, err error)) error {
	for failures := 0; ; {
		progress, err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if final(err) {
			return err
		}
		if progress {
			failures = 0
		}
		if failures++; failures >= c.cfg.Tries {
			return err
		}
		wait := min(c.cfg.Backoff<<(failures-1), maxBackoff)
		wait = time.Duration(float64(wait) * (0.5 + rand.Float64())) // so that many clients do not come back at once
		var status *statusError
		if errors.As(err, &status) && status.retryAfter > wait {
			wait = min(status.retryAfter, maxRetryAfter)
		}
		if err := c.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// retryAfter reads the header, in seconds or as a date.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.Atoi(v); err == nil && n > 0 {
		return time.Duration(min(n, 3600)) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// unreachable says in words why a registry did not do what it was asked.
func (r *remote) unreachable(err error) error {
	var classified *fault.Error
	if errors.As(err, &classified) || err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var status *statusError
	var dns *net.DNSError
	why, code := "the connection failed", fault.Busy
	switch {
	case errors.As(err, &status):
		switch {
		case status.status == http.StatusUnauthorized || status.status == http.StatusForbidden:
			e := fault.Wrap(err, fault.Denied, "registry", "the registry %s does not allow it (%s)", r.base.Host, status)
			e.Hint = "a credential for " + r.base.Host + " may be missing or wrong"
			return e
		case status.temporary():
			why = "it answers " + status.Error()
		default:
			return fault.Wrap(err, fault.Conflict, "registry", "the registry %s answers %s", r.base.Host, status)
		}
	case errors.Is(err, errDisk):
		return err
	case errors.As(err, &dns):
		why = "its name is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "nothing listens there"
	case errors.Is(err, errStalled) || errors.Is(err, context.DeadlineExceeded):
		why = "it sends nothing"
	case plainAnswer(err):
		return fault.Wrap(err, fault.Conflict, "registry", "the registry %s speaks plain HTTP only: allow it with insecure, which works for this machine and for hosts that are listed as insecure", r.base.Host)
	case final(err):
		return fault.Wrap(err, fault.Conflict, "registry", "the certificate of the registry %s is not trusted", r.base.Host)
	}
	e := fault.Wrap(err, code, "registry", "the registry %s cannot be reached: %s", r.base.Host, why)
	e.RetryAfter = busyAgain
	return e
}
