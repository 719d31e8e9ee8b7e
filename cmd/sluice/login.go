package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/fault"
)

// login is what a server gave for a password.
type login struct {
	User            string    `json:"user,omitempty"`
	Token           string    `json:"token"`
	ExpiresAt       time.Time `json:"expires_at"`
	AuthenticatedAt time.Time `json:"authenticated_at"`
}

func loginCmd() *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use: "login", Short: "Log in with a password; the commands then need no key", Args: cobra.NoArgs,
		Long: "Log in with a password. The login lasts 12 hours and is kept in your config folder, for this server alone, readable by you\n" +
			"alone. SLUICE_KEY comes before it. COPY, and changes of users, keys and grants, want a password given less than auth.fresh_for\n" +
			"(15 minutes) ago: log in again.",
	}
	password := passwordFlag(cmd, "the password")
	cmd.Flags().StringVar(&user, "user", "", "name of the user")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c := newClient()
		if os.Getenv("SLUICE_KEY") != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "note: SLUICE_KEY is set and comes before a login")
		}
		var err error
		if user == "" {
			if user, err = askUser(cmd, password); err != nil {
				return err
			}
		}
		typed, err := password.read("Password")
		if err != nil {
			return err
		}
		c.key = "" // what is left of an earlier login is of no use here
		var got data[login]
		if err := c.call(cmd.Context(), "POST", "/v1/auth/login", map[string]string{"user": user, "password": typed}, &got); err != nil {
			return err
		}
		got.Data.User = user
		if err := saveLogin(c.url, &got.Data); err != nil {
			return fmt.Errorf("the login cannot be kept: %w", err)
		}
		if wantJSON(cmd) {
			return printJSON(cmd, map[string]any{"user": user, "server": c.url, "expires_at": got.Data.ExpiresAt})
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "logged in to %s as %s until %s\n", c.url, user, got.Data.ExpiresAt.Local().Format(time.DateTime))
		return nil
	}
	return cmd
}

// askUser asks for the name on the terminal.
func askUser(cmd *cobra.Command, password *secrets) (string, error) {
	terminal, ok := cmd.InOrStdin().(*os.File)
	if password.stdin || !ok || !canHide(terminal) {
		return "", usageError{errors.New("--user is missing")}
	}
	fmt.Fprint(cmd.ErrOrStderr(), "User: ")
	password.lines = bufio.NewReader(terminal)
	line, err := password.lines.ReadString('\n')
	return strings.TrimSpace(line), err
}

func logoutCmd() *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "End the login", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := newClient()
			if c.key = savedToken(c.url, time.Time{}); c.key == "" {
				return errors.New("there is no login for " + c.url)
			}
			err := c.call(cmd.Context(), "POST", "/v1/auth/logout", nil, nil)
			if fault.CodeOf(err) == fault.Unauthenticated {
				err = nil // the server had ended it
			}
			if err := errors.Join(err, saveLogin(c.url, nil)); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, map[string]string{"server": c.url, "status": "success"})
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "logged out of "+c.url)
			return nil
		},
	}
}

// loginFile is where logins are kept, by server: a token must never go to another one.
func loginFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "sluice", "logins.json"), err
}

func savedLogins() (map[string]login, error) {
	path, err := loginFile()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]login{}, nil
	}
	logins := map[string]login{}
	if err == nil {
		err = json.Unmarshal(text, &logins)
	}
	return logins, err
}

// savedToken is the token of the login for a server, "" when there is none or it has ended by now. A file that cannot be read
// is no login: the server then says that it wants one.
func savedToken(url string, now time.Time) string {
	logins, err := savedLogins()
	if l := logins[url]; err == nil && now.Before(l.ExpiresAt) {
		return l.Token
	}
	return ""
}

// saveLogin keeps the login for a server, or forgets it. The file is never readable by others, not even while it is written.
func saveLogin(url string, l *login) error {
	logins, err := savedLogins()
	if err != nil {
		logins = map[string]login{} // damaged: a login more or less is no loss
	}
	delete(logins, url)
	if l != nil {
		logins[url] = *l
	}
	path, err := loginFile()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(logins, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".logins-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
