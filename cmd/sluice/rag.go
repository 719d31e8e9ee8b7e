package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sluice/gateway"
)

func ragCmd() *cobra.Command {
	return group(&cobra.Command{Use: "rag", Short: "Collections of documents, and searching them"},
		ragCollectionsCmd(), ragCreateCmd(), ragAddCmd(), ragSearchCmd(), ragDocumentsCmd(), ragShowCmd(), ragRemoveCmd())
}

func collectionPath(name string, more ...string) string {
	path := "/v1/rag/collections/" + url.PathEscape(name)
	for _, m := range more {
		path += "/" + url.PathEscape(m)
	}
	return path
}

func ragCollectionsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "collections", Short: "List the collections that you may read", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got data[[]gateway.CollectionInfo]
			if err := newClient().call(cmd.Context(), "GET", "/v1/rag/collections", nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			var rows [][]string
			for _, c := range got.Data {
				rows = append(rows, []string{c.Name, printable(c.Owner), c.Access, fmt.Sprint(c.Documents), fmt.Sprint(c.Chunks), bytesText(c.Bytes), vectorsText(c.Vectors), printable(c.Database), printable(c.Description)})
			}
			return printTable(cmd.OutOrStdout(), []string{"NAME", "OWNER", "ACCESS", "DOCUMENTS", "CHUNKS", "SIZE", "VECTORS", "DATABASE", "DESCRIPTION"}, rows)
		},
	}
}

// vectorsText says of which model the vectors are, and how far another model's are.
func vectorsText(v *gateway.VectorsInfo) string {
	switch {
	case v == nil:
		return "-"
	case v.Rebuild != nil:
		return printable(fmt.Sprintf("%s; %s %d of %d", v.Model, v.Rebuild.Model, v.Rebuild.Done, v.Rebuild.Total))
	}
	return printable(v.Model)
}

func ragCreateCmd() *cobra.Command {
	var c gateway.NewCollection
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a collection, which is yours", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Name = args[0]
			return carryOut[gateway.CollectionInfo](cmd, "POST", "/v1/rag/collections", c, "made "+printable(c.Name))
		},
	}
	cmd.Flags().StringVar(&c.Description, "description", "", "what is in it, in a sentence")
	cmd.Flags().StringVarP(&c.Database, "database", "d", "", "the database whose words the documents explain: its questions look here, and only its readers do")
	return cmd
}

func ragAddCmd() *cobra.Command {
	var d gateway.NewDocument
	var meta []string
	cmd := &cobra.Command{
		Use: "add COLLECTION FILE…", Short: "Add text or Markdown files, or bring them up to date", Args: cobra.MinimumNArgs(2),
		Long: "Add text or Markdown files; - reads one from stdin, and a folder stands for the .md, .markdown and .txt files below it.\n" +
			"A file that was added before from the same path is replaced; one that has not changed is not embedded again.\n" +
			"The files before one that fails stay added.",
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := textFiles(args[1:])
			if err != nil {
				return err
			}
			if len(files) > 1 && (d.ID != "" || d.Source != "" || d.Title != "") {
				return usageError{fmt.Errorf("--id, --source and --title are for one file; %d were named", len(files))}
			}
			if d.Metadata, err = metadataOf(meta); err != nil {
				return err
			}
			return addFiles(cmd, args[0], files, d)
		},
	}
	cmd.Flags().StringVar(&d.ID, "id", "", "of the document; default: one is made")
	cmd.Flags().StringVar(&d.Source, "source", "", "where it comes from; default: the path")
	cmd.Flags().StringVar(&d.Title, "title", "", "default: its first heading, else the file's name")
	cmd.Flags().StringArrayVar(&meta, "meta", nil, "NAME=VALUE, which a search can ask to be equal; may be given several times")
	return cmd
}

// metadataOf reads NAME=VALUE. All values are texts.
func metadataOf(pairs []string) (map[string]any, error) {
	var out map[string]any
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usageError{fmt.Errorf("%q is not NAME=VALUE", p)}
		}
		if out == nil {
			out = map[string]any{}
		}
		out[name] = value
	}
	return out, nil
}

// textFiles finds the files below folders. Links are not followed.
func textFiles(names []string) (files []string, err error) {
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" || err == nil && !info.IsDir() {
			files = append(files, name)
			continue
		}
		if err != nil {
			return nil, usageError{err}
		}
		before := len(files)
		err = filepath.WalkDir(name, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			switch ext := strings.ToLower(filepath.Ext(path)); {
			case d.IsDir() && path != name && strings.HasPrefix(d.Name(), "."):
				return filepath.SkipDir
			case d.Type().IsRegular() && (ext == ".md" || ext == ".markdown" || ext == ".txt"):
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(files) == before {
			return nil, usageError{fmt.Errorf("there is no .md, .markdown or .txt file below %s", name)}
		}
	}
	return files, nil
}

func addFiles(cmd *cobra.Command, collection string, files []string, d gateway.NewDocument) error {
	c, done := newClient(), []gateway.DocumentInfo{}
	for i, file := range files {
		one := d
		text, err := readText(cmd.InOrStdin(), file)
		if err != nil {
			return err
		}
		one.Text = text
		if file != "-" {
			one.Source = cmp.Or(d.Source, filepath.ToSlash(filepath.Clean(file)))
		}
		if ext := strings.ToLower(filepath.Ext(file)); ext != ".md" && ext != ".markdown" && file != "-" {
			one.Format = "text"
		}
		added, err := addOne(cmd.Context(), c, collection, one)
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "[%d/%d] %s: not added\n", i+1, len(files), printable(file))
			return err
		}
		done = append(done, added)
		if !wantJSON(cmd) {
			fmt.Fprintf(cmd.ErrOrStderr(), "[%d/%d] %s: %s, %d chunks\n", i+1, len(files), printable(file), added.Result, added.Chunks)
		}
	}
	if wantJSON(cmd) {
		return printJSON(cmd, done)
	}
	return nil
}

func readText(stdin io.Reader, file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(stdin)
		return string(text), err
	}
	text, err := os.ReadFile(file)
	if err == nil && !utf8.Valid(text) { // JSON would change it in silence
		return "", fmt.Errorf("%s is not UTF-8: convert it to text or Markdown first", file)
	}
	return string(text), err
}

func addOne(ctx context.Context, c *client, collection string, d gateway.NewDocument) (gateway.DocumentInfo, error) {
	var got data[gateway.DocumentInfo]
	err := c.call(ctx, "POST", collectionPath(collection, "documents"), d, &got)
	return got.Data, err
}
