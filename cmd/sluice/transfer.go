package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ollama/ollama/api"
	"github.com/spf13/cobra"

	"sluice/fault"
)

func pullCmd() *cobra.Command {
	return transferCmd("pull", &cobra.Command{
		Use: "pull MODEL", Short: "Get a model from a registry",
		Long: "Get a model from a registry. What was fetched is kept when it ends early: the next pull goes on from there.\n" +
			"The name of a model of the catalogue is enough; else it is [HOST/[NAMESPACE/]]NAME[:TAG], and HOST is one of the\n" +
			"catalogue's registries (docs/SETTINGS.md). It needs an admin key (SLUICE_KEY), or open_admin.",
		Example: "  sluice pull qwen2.5:7b",
	}, "what was fetched is kept, and the next `sluice pull %s` goes on from there")
}

func pushCmd() *cobra.Command {
	return transferCmd("push", &cobra.Command{
		Use: "push MODEL", Short: "Put a model into a registry",
		Long: "Put an installed model into a registry, the one that its name begins with: sluice cp MODEL HOST/NAMESPACE/NAME\n" +
			"gives it such a name. What the registry has got is kept when it ends early. It needs an admin key (SLUICE_KEY),\n" +
			"or open_admin.",
		Example: "  sluice cp my-model models.example.org/team/my-model\n  sluice push models.example.org/team/my-model",
	}, "the layers that the registry has are kept, and the next `sluice push %s` goes on from there")
}

// transferCmd completes a command that moves a model; kept says what a cancelled one leaves, with the model's name in it.
func transferCmd(what string, cmd *cobra.Command, kept string) *cobra.Command {
	var insecure bool
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		b := newBars(os.Stderr)
		if cmd.ErrOrStderr() != os.Stderr {
			b = &bars{out: cmd.ErrOrStderr(), now: b.now}
		}
		name, last := args[0], ""
		body := map[string]any{"model": name, "insecure": insecure}
		err := newClient().lines(cmd.Context(), "POST", "/api/"+what, body, func(line []byte) error {
			var p api.ProgressResponse
			if err := json.Unmarshal(line, &p); err != nil {
				return fmt.Errorf("the server sent what is no progress: %w", err)
			}
			last = p.Status
			if wantJSON(cmd) {
				_, err := cmd.OutOrStdout().Write(line)
				return err
			}
			b.tell(p)
			return nil
		})
		if !wantJSON(cmd) {
			b.end()
		}
		goOn := fmt.Sprintf(kept, name)
		switch {
		case fault.CodeOf(err) == fault.Canceled:
			return &fault.Error{Code: fault.Canceled, Op: "transfer", Msg: "cancelled: " + goOn}
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fault.Wrap(err, fault.Internal, "transfer", "the server went away: %s", goOn)
		case err == nil && last != "success":
			return fault.New(fault.Internal, "transfer", "the server ended the %s before its end: %s", what, goOn)
		}
		return err
	}
	cmd.Flags().BoolVar(&insecure, "insecure", false, "allow plain HTTP, to registries that the catalogue names as insecure and to this machine")
	return cmd
}
