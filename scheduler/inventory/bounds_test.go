package inventory

import (
	"strings"
	"testing"

	"sluice/fault"
)

func TestAMachineFileWithoutEnd(t *testing.T) {
	_, err := ParseDescribed("m.yaml", []byte(strings.Repeat("[", maxFile+1)))
	if fault.CodeOf(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), "16 KiB") {
		t.Errorf("%v", err)
	}
}
