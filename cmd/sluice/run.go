package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/spf13/cobra"
)

func runCmd() *cobra.Command {
	var system, think, format, keepAlive string
	var options []string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "run MODEL [PROMPT]",
		Short: "Chat with a model; with a PROMPT (or text on stdin) one answer",
		Long: "Chat with a model; with a PROMPT (or text on stdin, which goes before it) one answer. A path of a PNG, JPEG or WebP\n" +
			"file in the prompt, beginning with / or ./, is sent as an image to a model that takes images.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t := &talk{
				client: newClient(), model: args[0], out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), verbose: verbose,
				json: wantJSON(cmd), terminal: isTerminal(os.Stdout), keepAlive: keepAlive,
			}
			var err error
			if t.think, err = thinkValue(think); err != nil {
				return err
			}
			if t.format, err = formatValue(format); err != nil {
				return err
			}
			if t.options, err = parameters(options); err != nil {
				return err
			}
			if system != "" {
				t.messages = append(t.messages, api.Message{Role: "system", Content: system})
			}
			prompt := strings.Join(args[1:], " ")
			if !isTerminal(os.Stdin) && isInput(os.Stdin) {
				text, err := io.ReadAll(cmd.InOrStdin())
				if err != nil {
					return err
				}
				prompt = strings.TrimSpace(string(text) + "\n" + prompt)
				if prompt == "" {
					return usageError{fmt.Errorf("the prompt is empty; see %s --help", cmd.CommandPath())}
				}
			}
			if prompt == "" {
				return t.session(cmd.Context(), cmd.InOrStdin())
			}
			return t.ask(cmd.Context(), prompt)
		},
	}
	cmd.Flags().StringVar(&system, "system", "", "system prompt")
	cmd.Flags().StringVar(&think, "think", "", "true, false, high, medium or low; alone it means true. Default: as the model does")
	cmd.Flags().Lookup("think").NoOptDefVal = "true"
	cmd.Flags().StringVar(&format, "format", "", `"json", a JSON Schema, or a file that holds one: the answer's form`)
	cmd.Flags().StringVar(&keepAlive, "keepalive", "", "how long the model stays loaded afterwards, such as 10m; 0: not at all, -1: for ever")
	cmd.Flags().StringArrayVar(&options, "option", nil, "an option, name=value, such as temperature=0; repeatable")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "after each answer say how many tokens it had and how fast they came")
	return cmd
}

func isTerminal(f *os.File) bool {
	stat, err := f.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}

// isInput tells a file or a pipe from a closed stdin.
func isInput(f *os.File) bool {
	stat, err := f.Stat()
	return err == nil && (stat.Mode().IsRegular() || stat.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0)
}

// thinkValue reads --think; nil leaves it to the model.
func thinkValue(v string) (any, error) {
	switch {
	case v == "":
		return nil, nil
	case v == "true" || v == "false":
		return v == "true", nil
	case slices.Contains([]string{"high", "medium", "low"}, v):
		return v, nil
	}
	return nil, usageError{fmt.Errorf("--think: %q is none of true, false, high, medium, low", v)}
}

// formatValue reads --format.
func formatValue(v string) (json.RawMessage, error) {
	switch {
	case v == "":
		return nil, nil
	case v == "json":
		return json.RawMessage(`"json"`), nil
	case !strings.HasPrefix(strings.TrimSpace(v), "{"):
		text, err := os.ReadFile(v)
		if err != nil {
			return nil, usageError{fmt.Errorf("--format: neither \"json\", nor a JSON Schema, nor a file: %w", err)}
		}
		v = string(text)
	}
	if !json.Valid([]byte(v)) {
		return nil, usageError{fmt.Errorf("--format: the schema is no valid JSON")}
	}
	return json.RawMessage(v), nil
}
