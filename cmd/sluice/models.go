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

	"github.com/ollama/ollama/api"
	"github.com/spf13/cobra"

	"sluice/fault"
)

func listCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the installed models", Args: cobra.NoArgs,
		Long: "List the installed models, newest first, then those of servers elsewhere (remotes), of which there is no size.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var raw json.RawMessage
			if err := newClient().call(cmd.Context(), "GET", "/api/tags", nil, &raw); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, raw)
			}
			var got api.ListResponse
			if err := json.Unmarshal(raw, &got); err != nil {
				return err
			}
			var rows [][]string
			for _, m := range got.Models {
				size, when := bytesText(m.Size), m.ModifiedAt.Local().Format("2006-01-02 15:04")
				if m.Size == 0 {
					size = "-"
				}
				if m.ModifiedAt.Unix() <= 0 {
					when = "-"
				}
				rows = append(rows, []string{printable(m.Name), size, printable(m.Details.ParameterSize), printable(m.Details.QuantizationLevel), when})
			}
			return printTable(cmd.OutOrStdout(), []string{"NAME", "SIZE", "PARAMETERS", "QUANTIZATION", "MODIFIED"}, rows)
		},
	}
}

func showCmd() *cobra.Command {
	return &cobra.Command{
		Use: "show MODEL", Short: "Show what a model is: its family, size, context, what it can do, its default options", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var raw json.RawMessage
			if err := newClient().call(cmd.Context(), "POST", "/api/show", map[string]string{"model": args[0]}, &raw); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, raw)
			}
			var got api.ShowResponse
			if err := json.Unmarshal(raw, &got); err != nil {
				return err
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
		Long: "Unload a model when its last request ends. The next request for it loads it again. It is no error when it is not loaded.",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{"model": args[0], "prompt": "", "keep_alive": 0, "stream": false}
			if err := newClient().call(cmd.Context(), "POST", "/api/generate", body, nil); err != nil {
				return err
			}
			return done(cmd, "stopped", args[0])
		},
	}
}

func cpCmd() *cobra.Command {
	return &cobra.Command{
		Use: "cp MODEL NAME", Short: "Give a model a second name", Args: cobra.ExactArgs(2),
		Long:    "Give a model a second name. The files are shared: they take no room twice, and go with the last name.",
		Example: "  sluice cp qwen2.5:7b my-model",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := newClient().call(cmd.Context(), "POST", "/api/copy", map[string]string{"source": args[0], "destination": args[1]}, nil); err != nil {
				return err
			}
			return done(cmd, "copied to", args[1])
		},
	}
}

func rmCmd() *cobra.Command {
	return &cobra.Command{
		Use: "rm MODEL...", Short: "Delete models", Args: cobra.MinimumNArgs(1),
		Long: "Delete models. One that is loaded goes when its last request ends. Files that another model has too stay.",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if err := newClient().call(cmd.Context(), "DELETE", "/api/delete", map[string]string{"model": name}, nil); err != nil {
					return err
				}
				if err := done(cmd, "deleted", name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// done says what was done with a model: to people on stderr, to programs as a line of JSON.
func done(cmd *cobra.Command, what, name string) error {
	if wantJSON(cmd) {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"status": "success", "model": name})
	}
	fmt.Fprintln(cmd.ErrOrStderr(), what+" "+name)
	return nil
}

func createCmd() *cobra.Command {
	var from, system, templateFile string
	var params []string
	cmd := &cobra.Command{
		Use:   "create NAME --from FILE.gguf|FOLDER|MODEL",
		Short: "Make a model from a GGUF file, a safetensors folder, or another model",
		Long: "Make a model from a GGUF file, a safetensors folder, or another model. Files are sent to the server unless it has them.\n" +
			"It needs an admin key (SLUICE_KEY), or open_admin.",
		Example: "  sluice create my-model --from model.gguf --param num_ctx=8192\n  sluice create terse --from my-model --system 'Answer in one sentence.'",
		Args:    cobra.ExactArgs(1),
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
