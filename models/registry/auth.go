package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"sluice/fault"
)

const maxToken = 64 << 10

// challenge is one way to log in that a registry offers.
type challenge struct {
	scheme string // lower case
	params map[string]string
}

// parseChallenge reads a WWW-Authenticate header: a scheme and parameters, whose values may be quoted and have commas and escaped
// quotes in them. What is malformed is left out.
func parseChallenge(header string) challenge {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	c := challenge{scheme: strings.ToLower(scheme), params: map[string]string{}}
	for rest != "" {
		rest = strings.TrimLeft(rest, " \t,")
		key, after, ok := strings.Cut(rest, "=")
		if !ok {
			break
		}
		key = strings.ToLower(strings.TrimSpace(key))
		var value strings.Builder
		if strings.HasPrefix(after, `"`) {
			i := 1
			for ; i < len(after) && after[i] != '"'; i++ {
				if after[i] == '\\' && i+1 < len(after) {
					i++
				}
				value.WriteByte(after[i])
			}
			rest = after[min(i+1, len(after)):]
		} else {
			var plain string
			plain, rest, _ = strings.Cut(after, ",")
			value.WriteString(strings.TrimSpace(plain))
		}
		if _, twice := c.params[key]; !twice {
			c.params[key] = value.String()
		}
	}
	return c
}

// login meets a challenge. sent is what the refused request carried: when another part has logged in since, there is nothing to do.
func (r *remote) login(ctx context.Context, headers []string, sent string) error {
	r.mu.Lock()
	now := r.authorization
	r.mu.Unlock()
	if now != sent {
		return nil
	}
	var header string
	for _, h := range headers {
		c := parseChallenge(h)
		if c.scheme == "bearer" && c.params["realm"] != "" {
			token, err := r.token(ctx, c)
			if err != nil {
				return err
			}
			header = "Bearer " + token
			break
		}
		if c.scheme == "basic" && r.cred != nil && r.cred.User != "" {
			header = basic(r.cred)
		}
	}
	if header == "" {
		return r.wantsLogin()
	}
	r.mu.Lock()
	r.authorization = header
	r.mu.Unlock()
	return nil
}

func basic(c *Credential) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
}

func (r *remote) wantsLogin() error {
	e := fault.New(fault.Denied, "registry.login", "the registry %s wants a login for %s", r.base.Host, r.repo)
	e.Hint = "give it a credential, or correct the one that it has"
	return e
}

// token gets a token where the registry says. That place has TLS or is the registry itself, and a password goes there only when it
// is the registry itself or an allowed registry too.
func (r *remote) token(ctx context.Context, c challenge) (string, error) {
	realm, err := url.Parse(c.params["realm"])
	if err != nil || realm.Host == "" {
		return "", fault.New(fault.Conflict, "registry.token", "the registry %s names a token server that is not a URL", r.base.Host)
	}
	if !sameHost(realm, &r.base) && (realm.Scheme != "https" || r.base.Scheme != "https") {
		return "", fault.New(fault.Denied, "registry.token", "the registry %s sends us to the token server %s without TLS", r.base.Host, realm.Host)
	}
	realm.User = nil
	query := realm.Query()
	if service := c.params["service"]; service != "" {
		query.Set("service", service)
	}
	for _, scope := range strings.Fields(c.params["scope"]) {
		query.Add("scope", scope)
	}
	realm.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil)
	if err != nil {
		return "", bare(err)
	}
	req.Header.Set("User-Agent", "sluice")
	if r.cred != nil && r.cred.User != "" && (sameHost(realm, &r.base) || listed(r.c.cfg.Hosts, realm.Host)) {
		req.Header.Set("Authorization", basic(r.cred))
	}
	way, err := r.via(req)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: way, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return "", cause
		}
		return "", bare(err)
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		discard(resp)
		return "", r.wantsLogin()
	case resp.StatusCode != http.StatusOK:
		return "", refused(resp)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxToken+1))
	if err != nil {
		return "", bare(err)
	}
	var got struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	// The text of a JSON error may quote the token.
	if json.Unmarshal(data, &got) != nil || len(data) > maxToken || got.Token+got.AccessToken == "" {
		return "", fault.New(fault.Conflict, "registry.token", "the token server of the registry %s gives no token", r.base.Host)
	}
	token := got.Token
	if token == "" {
		token = got.AccessToken
	}
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", fault.New(fault.Conflict, "registry.token", "the token server of the registry %s gives a malformed token", r.base.Host)
	}
	return token, nil
}
