// Command write writes the tiny models of package tinygguf into a folder.
//
//	go run ./internal/tinygguf/write FOLDER [NAME…]
package main

import (
	"fmt"
	"os"

	"sluice/internal/tinygguf"
)

const seed = 1

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: write FOLDER [NAME…]; the names are %v", tinygguf.Names())
	}
	names := args[1:]
	if len(names) == 0 {
		names = tinygguf.Names()
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	for _, name := range names {
		path, err := tinygguf.Write(args[0], name, seed)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
