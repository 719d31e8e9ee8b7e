package main

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"sluice/gateway"
)

func usersCmd() *cobra.Command {
	return group(&cobra.Command{Use: "users", Short: "List, make and change users (admin)"},
		usersListCmd(), usersAddCmd(), usersPasswdCmd(), usersRoleCmd(), usersAbleCmd("disable", true), usersAbleCmd("enable", false), usersRemoveCmd())
}

func usersListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List users", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got data[[]gateway.UserInfo]
			if err := newClient().call(cmd.Context(), "GET", "/v1/users", nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			var rows [][]string
			for _, u := range got.Data {
				state := "active"
				switch {
				case u.Disabled:
					state = "disabled"
				case !u.HasPassword:
					state = "no password"
				}
				rows = append(rows, []string{printable(u.Name), u.Role, state, whenText(u.LastLogin), whenText(&u.CreatedAt)})
			}
			return printTable(cmd.OutOrStdout(), []string{"NAME", "ROLE", "STATE", "LAST LOGIN", "CREATED"}, rows)
		},
	}
}

// whenText is a time for people, "never" for none.
func whenText(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}

func usersAddCmd() *cobra.Command {
	var role string
	var without bool
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Make a user", Args: cobra.ExactArgs(1),
		Long: "Make a user. Without grants he reads nothing (sluice grants add), unless his role is admin.",
	}
	password := passwordFlag(cmd, "the password")
	cmd.Flags().StringVar(&role, "role", "read_only", "restricted, read_only, read_write or admin")
	cmd.Flags().BoolVar(&without, "no-password", false, "he gets one later, with users passwd, or none: keys and acts_for need none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body := map[string]string{"name": args[0], "role": role}
		if without && password.stdin {
			return usageError{errors.New("--no-password and --password-stdin exclude each other")}
		}
		if !without {
			typed, err := password.fresh("Password of " + printable(args[0]))
			if err != nil {
				return err
			}
			body["password"] = typed
		}
		return carryOut[gateway.UserInfo](cmd, "POST", "/v1/users", body, "made user "+printable(args[0])+" with the role "+role)
	}
	return cmd
}

func usersPasswdCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "passwd [NAME]", Short: "Change a password: your own, or as an admin another's", Args: cobra.MaximumNArgs(1),
		Long: "Change a password, which ends all logins of that user. Your own needs the present one; with --password-stdin the first line is\n" +
			"the present and the second the new password.",
	}
	password := passwordFlag(cmd, "the password")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := newClient()
		var me data[struct{ User, Kind string }]
		if err := c.call(cmd.Context(), "GET", "/v1/auth/me", nil, &me); err != nil {
			return err
		}
		name, body := me.Data.User, map[string]string{}
		if len(args) == 1 {
			name = args[0]
		}
		var err error
		if name == me.Data.User && me.Data.Kind == "login" {
			if body["current_password"], err = password.read("Present password"); err != nil {
				return err
			}
		}
		if body["password"], err = password.fresh("New password of " + printable(name)); err != nil {
			return err
		}
		return carryOut[gateway.UserInfo](cmd, "PATCH", "/v1/users/"+url.PathEscape(name), body, "changed the password of "+printable(name)+"; all logins with the old one have ended")
	}
	return cmd
}

func usersRoleCmd() *cobra.Command {
	return &cobra.Command{
		Use: "role NAME ROLE", Short: "Change a user's role: restricted, read_only, read_write or admin", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return carryOut[gateway.UserInfo](cmd, "PATCH", "/v1/users/"+url.PathEscape(args[0]), map[string]string{"role": args[1]}, printable(args[0]+" has the role "+args[1]))
		},
	}
}

func usersAbleCmd(verb string, disabled bool) *cobra.Command {
	short := "Let a user in again"
	if disabled {
		short = "Keep a user out: his logins end, and his keys do not work"
	}
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return carryOut[gateway.UserInfo](cmd, "PATCH", "/v1/users/"+url.PathEscape(args[0]), map[string]bool{"disabled": disabled}, verb+"d "+printable(args[0]))
		},
	}
}

func usersRemoveCmd() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Delete a user with his keys, logins and grants", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return carryOut[map[string]string](cmd, "DELETE", "/v1/users/"+url.PathEscape(args[0]), nil, "deleted "+printable(args[0])+" with his keys, logins and grants")
		},
	}
}

// carryOut makes a request that changes something and says that it did: the answer with --json, else a sentence on stderr.
func carryOut[T any](cmd *cobra.Command, method, path string, body any, done string) error {
	var got data[T]
	if err := newClient().call(cmd.Context(), method, path, body, &got); err != nil {
		return err
	}
	if wantJSON(cmd) {
		return printJSON(cmd, got.Data)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), done)
	return nil
}
