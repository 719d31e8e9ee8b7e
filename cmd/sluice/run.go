package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/spf13/cobra"
)

func runCmd() *cobra.Command {
	var system string
	cmd := &cobra.Command{
		Use:   "run MODEL [PROMPT]",
		Short: "Chat with a model; with a PROMPT (or text on stdin) one answer",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := newClient()
			var messages []api.Message
			if system != "" {
				messages = append(messages, api.Message{Role: "system", Content: system})
			}
			if prompt := strings.Join(args[1:], " "); prompt != "" {
				_, err := chat(cmd, c, args[0], append(messages, api.Message{Role: "user", Content: prompt}))
				return err
			}
			if stat, err := os.Stdin.Stat(); err == nil && stat.Mode()&os.ModeCharDevice == 0 {
				text, err := io.ReadAll(cmd.InOrStdin())
				if err != nil {
					return err
				}
				_, err = chat(cmd, c, args[0], append(messages, api.Message{Role: "user", Content: string(text)}))
				return err
			}
			return converse(cmd, c, args[0], messages)
		},
	}
	cmd.Flags().StringVar(&system, "system", "", "system prompt")
	return cmd
}

// converse reads a line, answers it, and remembers both.
func converse(cmd *cobra.Command, c *client, model string, messages []api.Message) error {
	in := bufio.NewScanner(cmd.InOrStdin())
	fmt.Fprint(cmd.ErrOrStderr(), "/bye or Ctrl-D ends.\n>>> ")
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if line == "/bye" {
			return nil
		}
		if line != "" {
			messages = append(messages, api.Message{Role: "user", Content: line})
			answer, err := chat(cmd, c, model, messages)
			if err != nil {
				return err
			}
			messages = append(messages, api.Message{Role: "assistant", Content: answer})
		}
		fmt.Fprint(cmd.ErrOrStderr(), ">>> ")
	}
	fmt.Fprintln(cmd.ErrOrStderr())
	return in.Err()
}

// chat streams one answer and returns its text.
func chat(cmd *cobra.Command, c *client, model string, messages []api.Message) (string, error) {
	var answer strings.Builder
	out := cmd.OutOrStdout()
	body := map[string]any{"model": model, "messages": messages}
	err := c.lines(cmd.Context(), "POST", "/api/chat", body, func(line []byte) error {
		if wantJSON(cmd) {
			_, err := out.Write(line)
			return err
		}
		var part api.ChatResponse
		if err := json.Unmarshal(line, &part); err != nil {
			return err
		}
		answer.WriteString(part.Message.Content)
		fmt.Fprint(out, printable(part.Message.Content))
		if part.Done {
			fmt.Fprintln(out)
		}
		return nil
	})
	return answer.String(), err
}
