// Package fakebin builds internal/fakerunner for tests.
package fakebin

import (
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
)

// Build compiles the fake runner into dir and gives its path. Call it once, in TestMain.
func Build(dir string) (path string, err error) {
	path = filepath.Join(dir, "fakerunner")
	out, err := exec.Command("go", "build", "-o", path, "sluice/internal/fakerunner").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build fakerunner: %w\n%s", err, out)
	}
	return path, nil
}

// Say is a script for a prompt: the model answers with the text, whatever it is; further texts are the other answers of a
// request for several.
func Say(texts ...string) string {
	return "{{" + url.Values{"text": texts}.Encode() + "}}"
}
