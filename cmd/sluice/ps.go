package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// loadedModel is what ps reads of an entry of /api/ps.
type loadedModel struct {
	Name          string    `json:"name"`
	State         string    `json:"state"`
	Progress      float64   `json:"progress"`
	Size          int64     `json:"size"`
	ContextLength int       `json:"context_length"`
	ExpiresAt     time.Time `json:"expires_at"`
	InFlight      int       `json:"in_flight"`
	Waiting       int       `json:"waiting"`
	Pinned        bool      `json:"pinned"`
	Remote        string    `json:"remote"`
	Warning       string    `json:"warning"`
	Layers        int       `json:"layers"`
	Placement     []struct {
		Device string `json:"device"`
		Layers int    `json:"layers"`
		Bytes  int64  `json:"bytes"`
	} `json:"placement"`
}

func psCmd() *cobra.Command {
	return &cobra.Command{
		Use: "ps", Short: "List the loaded models: where they are, what they do, when they go", Args: cobra.NoArgs,
		Long: "List the loaded models. PLACEMENT: CPU (main memory), 100% GPU, how many of its layers are on which GPU, or the\n" +
			"server elsewhere that it runs on. SIZE is as allocated; while a model loads, as estimated. REQUESTS: in flight, and\n" +
			"those that wait for it. UNLOADS: when nobody asks for it until then.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var raw json.RawMessage
			if err := newClient().call(cmd.Context(), "GET", "/api/ps", nil, &raw); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, raw)
			}
			var got struct{ Models []loadedModel }
			if err := json.Unmarshal(raw, &got); err != nil {
				return err
			}
			var rows [][]string
			for _, m := range got.Models {
				rows = append(rows, []string{printable(m.Name), m.state(), printable(m.placement()), bytesText(m.Size), fmt.Sprint(m.ContextLength), m.requests(), m.unloads(time.Now())})
			}
			if err := printTable(cmd.OutOrStdout(), []string{"NAME", "STATE", "PLACEMENT", "SIZE", "CONTEXT", "REQUESTS", "UNLOADS"}, rows); err != nil {
				return err
			}
			for _, m := range got.Models {
				if m.Warning != "" {
					fmt.Fprintf(cmd.OutOrStdout(), "warning: %s: %s\n", printable(m.Name), printable(m.Warning))
				}
			}
			return nil
		},
	}
}

func (m loadedModel) state() string {
	if m.State == "loading" && m.Progress > 0 {
		return fmt.Sprintf("loading %.0f%%", 100*m.Progress)
	}
	return m.State
}

// placement says where the model is. The layers tell it, where they are known: a whole model leaves a table of tokens in
// main memory all the same.
func (m loadedModel) placement() string {
	if m.Remote != "" {
		return "remote " + m.Remote
	}
	var gpus []string
	layers, bytes := 0, int64(0)
	for _, p := range m.Placement {
		if p.Device != "cpu" {
			gpus, layers, bytes = append(gpus, p.Device), layers+p.Layers, bytes+p.Bytes
		}
	}
	switch {
	case len(gpus) == 0:
		return "CPU"
	case m.Layers > 0 && layers >= m.Layers && len(gpus) == 1:
		return "100% GPU"
	case m.Layers > 0 && layers >= m.Layers:
		return "100% GPU (" + strings.Join(gpus, "+") + ")"
	case m.Layers > 0 && layers > 0:
		return fmt.Sprintf("%d/%d layers %s", layers, m.Layers, strings.Join(gpus, "+"))
	case m.Size > 0:
		return fmt.Sprintf("%d%% %s", 100*bytes/m.Size, strings.Join(gpus, "+"))
	}
	return strings.Join(gpus, "+")
}

func (m loadedModel) requests() string {
	if m.Waiting > 0 {
		return fmt.Sprintf("%d (+%d waiting)", m.InFlight, m.Waiting)
	}
	return fmt.Sprint(m.InFlight)
}

func (m loadedModel) unloads(now time.Time) string {
	left := m.ExpiresAt.Sub(now)
	switch {
	case m.Remote != "":
		return "-"
	case m.State == "draining" || m.State == "stopping":
		return "now"
	case m.Pinned:
		return "never (pinned)"
	case left > 365*24*time.Hour:
		return "never"
	case m.InFlight > 0:
		return "when idle"
	}
	return "in " + max(left, 0).Round(time.Second).String()
}
