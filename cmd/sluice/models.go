package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/spf13/cobra"

	"sluice/fault"
)

func listCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the installed models", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got api.ListResponse
			if err := newClient().call(cmd.Context(), "GET", "/api/tags", nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got)
			}
			var rows [][]string
			for _, m := range got.Models {
				rows = append(rows, []string{m.Name, bytesText(m.Size), m.Details.ParameterSize, m.Details.QuantizationLevel, m.ModifiedAt.Local().Format("2006-01-02 15:04")})
			}
			return printTable(cmd.OutOrStdout(), []string{"NAME", "SIZE", "PARAMETERS", "QUANTIZATION", "MODIFIED"}, rows)
		},
	}
}

func psCmd() *cobra.Command {
	return &cobra.Command{
		Use: "ps", Short: "List the loaded models", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got struct {
				Models []struct {
					api.ProcessModelResponse
					InFlight int    `json:"in_flight"`
					State    string `json:"state"`
				} `json:"models"`
			}
			if err := newClient().call(cmd.Context(), "GET", "/api/ps", nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got)
			}
			var rows [][]string
			for _, m := range got.Models {
				until := "in " + time.Until(m.ExpiresAt).Round(time.Second).String()
				if time.Until(m.ExpiresAt) > 365*24*time.Hour {
					until = "never"
				}
				rows = append(rows, []string{m.Name, m.State, fmt.Sprint(m.InFlight), bytesText(m.Size), bytesText(m.SizeVRAM), fmt.Sprint(m.ContextLength), until})
			}
			return printTable(cmd.OutOrStdout(), []string{"NAME", "STATE", "IN FLIGHT", "SIZE", "ON GPU", "CONTEXT", "UNLOADS"}, rows)
		},
	}
}

func showCmd() *cobra.Command {
	return &cobra.Command{
		Use: "show MODEL", Short: "Show what a model is", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var got api.ShowResponse
			if err := newClient().call(cmd.Context(), "POST", "/api/show", map[string]string{"model": args[0]}, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "family        %s\nparameters    %s\nquantization  %s\n", got.Details.Family, got.Details.ParameterSize, got.Details.QuantizationLevel)
			arch, _ := got.ModelInfo["general.architecture"].(string)
			if n, ok := got.ModelInfo[arch+".context_length"]; ok {
				fmt.Fprintf(out, "context       %v tokens\n", n)
			}
			fmt.Fprintf(out, "can           %s\n", strings.Trim(fmt.Sprint(got.Capabilities), "[]"))
			if got.Parameters != "" {
				fmt.Fprintf(out, "\n%s\n", got.Parameters)
			}
			return nil
		},
	}
}

func stopCmd() *cobra.Command {
	return &cobra.Command{
		Use: "stop MODEL", Short: "Unload a model when its last request ends", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return newClient().call(cmd.Context(), "POST", "/api/generate", map[string]any{"model": args[0], "prompt": "", "keep_alive": 0}, nil)
		},
	}
}

func cpCmd() *cobra.Command {
	return &cobra.Command{
		Use: "cp MODEL NAME", Short: "Give a model a second name", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return newClient().call(cmd.Context(), "POST", "/api/copy", map[string]string{"source": args[0], "destination": args[1]}, nil)
		},
	}
}

func rmCmd() *cobra.Command {
	return &cobra.Command{
		Use: "rm MODEL...", Short: "Delete models", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if err := newClient().call(cmd.Context(), "DELETE", "/api/delete", map[string]string{"model": name}, nil); err != nil {
					return err
				}
				fmt.Fprintln(cmd.ErrOrStderr(), "deleted "+name)
			}
			return nil
		},
	}
}

func createCmd() *cobra.Command {
	var from, system, templateFile string
	var params []string
	cmd := &cobra.Command{
		Use:   "create NAME --from FILE.gguf|FOLDER|MODEL",
		Short: "Make a model from a GGUF file, a safetensors folder, or another model",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if from == "" {
				return usageError{errors.New("--from is missing; see sluice create --help")}
			}
			c := newClient()
			body := map[string]any{"model": args[0]}
			if _, err := os.Stat(from); err == nil {
				files, err := upload(cmd, c, from)
				if err != nil {
					return err
				}
				body["files"] = files
			} else if strings.ContainsAny(from, "/\\") && !strings.Contains(from, ":") || strings.HasSuffix(from, ".gguf") {
				return fault.New(fault.NotFound, "create", "there is no file or folder %s", from)
			} else {
				body["from"] = from
			}
			if system != "" {
				body["system"] = system
			}
			if templateFile != "" {
				text, err := os.ReadFile(templateFile)
				if err != nil {
					return err
				}
				body["template"] = string(text)
			}
			if len(params) > 0 {
				p, err := parameters(params)
				if err != nil {
					return err
				}
				body["parameters"] = p
			}
			last := ""
			return c.lines(cmd.Context(), "POST", "/api/create", body, func(line []byte) error {
				if wantJSON(cmd) {
					_, err := cmd.OutOrStdout().Write(line)
					return err
				}
				var p api.ProgressResponse
				if err := json.Unmarshal(line, &p); err != nil {
					return err
				}
				if p.Status != last {
					last = p.Status
					fmt.Fprintln(cmd.ErrOrStderr(), p.Status)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "a GGUF file, a safetensors folder, or the name of an installed model")
	cmd.Flags().StringVar(&system, "system", "", "system prompt")
	cmd.Flags().StringVar(&templateFile, "template", "", "file with a Go template of the prompt; else the one the model brings")
	cmd.Flags().StringArrayVar(&params, "param", nil, "a default option, name=value; repeatable")
	return cmd
}

// parameters reads name=value pairs; a value that is JSON keeps its type.
func parameters(pairs []string) (map[string]any, error) {
	out := map[string]any{}
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--param %q: write name=value", p)}
		}
		var v any
		if json.Unmarshal([]byte(value), &v) != nil {
			v = value
		}
		out[name] = v
	}
	return out, nil
}

// upload sends the files of a model that the server does not have yet, and returns their digests by name.
func upload(cmd *cobra.Command, c *client, from string) (map[string]string, error) {
	paths := []string{from}
	base := filepath.Dir(from)
	if stat, err := os.Stat(from); err != nil {
		return nil, err
	} else if stat.IsDir() {
		base, paths = from, nil
		err := filepath.WalkDir(from, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && !strings.HasPrefix(d.Name(), ".") {
				paths = append(paths, p)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		sort.Strings(paths)
	}
	files := map[string]string{}
	for _, path := range paths {
		name, err := filepath.Rel(base, path)
		if err != nil {
			return nil, err
		}
		digest, err := uploadFile(cmd, c, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files[filepath.ToSlash(name)] = digest
	}
	return files, nil
}

func uploadFile(cmd *cobra.Command, c *client, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return "", err
	}
	digest := "sha256:" + hex.EncodeToString(h.Sum(nil))
	err = c.call(cmd.Context(), http.MethodHead, "/api/blobs/"+digest, nil, nil)
	if err == nil {
		return digest, nil
	}
	if fault.CodeOf(err) != fault.NotFound {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "sending %s (%s)\n", filepath.Base(path), bytesText(size))
	return digest, c.call(cmd.Context(), "POST", "/api/blobs/"+digest, io.Reader(f), nil)
}
