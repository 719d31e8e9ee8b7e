// Package fakebin builds internal/fakerunner for tests.
package fakebin

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"

	"sluice/runner"
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

// Machine is an entry of runner.Config.Env that tells the fake what devices there are. Further keys of its script may follow,
// each as in a URL's query.
func Machine(devices []runner.Device, more ...string) string {
	list, _ := json.Marshal(devices) // cannot fail
	return "FAKERUNNER=" + strings.Join(append([]string{url.Values{"devices": {string(list)}}.Encode()}, more...), "&")
}

// Say is a script for a prompt: the model answers with the text, whatever it is; further texts are the other answers of a
// request for several.
func Say(texts ...string) string {
	return "{{" + url.Values{"text": texts}.Encode() + "}}"
}
