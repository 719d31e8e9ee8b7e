package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sluice/fault"
)

// version is set by the Makefile.
var version = "dev"

// Exit codes, part of the contract.
const (
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
)

func main() {
	// The first signal asks everything to stop; a second one ends the process as usual.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() { <-ctx.Done(); stop() }()
	os.Exit(run(ctx))
}

func run(ctx context.Context) int {
	root := newRoot()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "error: "+describe(err))
	return exitCode(err)
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "sluice",
		Short:         "Models, questions about databases, and Parquet in your lake: one program beside your data",
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.PersistentFlags().Bool("json", false, "print JSON, for programs")
	root.AddCommand(
		serveCmd(), runCmd(), askCmd(), sqlCmd(), copyCmd(),
		pullCmd(), pushCmd(), createCmd(), listCmd(), psCmd(), showCmd(), stopCmd(), cpCmd(), rmCmd(),
		queriesCmd(), loginCmd(), logoutCmd(), usersCmd(), keysCmd(), grantsCmd(), learningCmd(), ragCmd(), auditCmd(), gateCmd(), evalCmd(), loadCmd(), doctorCmd(), versionCmd(),
	)
	for _, name := range []string{"mcp"} {
		root.AddCommand(absentCmd(name))
	}
	wrapArgs(root)
	return root
}

// absentCmd says of a command of the contract that it is not there yet, which "unknown command" would not.
func absentCmd(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return fault.New(fault.Unimplemented, "sluice", "sluice %s is not there in this version", name)
		},
	}
}

// group makes a command that only holds others: without one of them it shows its help, with a wrong one it is an error.
func group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(below...)
	return cmd
}

// wrapArgs makes a wrong number of arguments a usage error, which cobra does not tell apart.
func wrapArgs(cmd *cobra.Command) {
	if args := cmd.Args; args != nil {
		cmd.Args = func(c *cobra.Command, a []string) error {
			if err := args(c, a); err != nil {
				return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		wrapArgs(c)
	}
}

func describe(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err.Error()
	}
	text := f.Msg
	if f.Position > 0 {
		text += fmt.Sprintf(" (at position %d)", f.Position)
	}
	if f.Hint != "" {
		text += "\nhint: " + f.Hint
	}
	return text
}

func exitCode(err error) int {
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	switch fault.CodeOf(err) {
	case fault.Refused, fault.Denied, fault.Unauthenticated:
		return exitRefused
	}
	return exitFailed
}

func versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wantJSON(cmd) {
				return printJSON(cmd, map[string]string{"version": version})
			}
			fmt.Fprintln(cmd.OutOrStdout(), "sluice "+version)
			return nil
		},
	}
}
