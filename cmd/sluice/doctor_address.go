package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// address tries the port as serve would.
func (d *doctor) address(ctx context.Context) {
	l := &listenReport{Address: d.cfg.Listen}
	d.report.Listen = l
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.Address)
	if err == nil {
		listener.Close()
		l.Free = true
		return
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		l.By = "nobody, but it cannot be used"
		d.broken("listen: "+err.Error(), "choose another address: listen, SLUICE_HOST, or --listen")
		return
	}
	var sluice bool
	if l.By, sluice = whoAnswers(ctx, l.Address); !sluice {
		d.broken("listen: "+l.Address+" is taken by "+l.By+", so that sluice serve will not start there", "stop it, or choose another address: listen, SLUICE_HOST, or --listen")
	}
}

// whoAnswers asks who is at an address, and tells whether it is one of us.
func whoAnswers(ctx context.Context, address string) (who string, sluice bool) {
	const unknown = "another program"
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if host, port, err := net.SplitHostPort(address); err == nil {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			address = net.JoinHostPort("127.0.0.1", port)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/version", nil)
	if err != nil {
		return unknown, false
	}
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy
	res, err := web.Do(req)
	if err != nil {
		return unknown, false
	}
	defer res.Body.Close()
	if v := res.Header.Get("X-Sluice-Version"); v != "" {
		return "a running Sluice " + v, true
	}
	var body struct {
		Version string `json:"version"`
	}
	if json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&body) == nil && body.Version != "" {
		return "an Ollama " + body.Version, false
	}
	return unknown, false
}
