package gateway

import (
	"strings"
	"testing"
)

// Keys and login tokens that somebody typed where none belong, such as in a statement, must not last in the ledger.
func TestKeysAndTokensInTextsAreCut(t *testing.T) {
	for _, form := range []string{"slc_", "slt_"} {
		secret := form + strings.Repeat("aZ9_-", 8)
		if got := presentableText("SELECT '"+secret+"'", ""); got != "SELECT '[secret]'" {
			t.Errorf("%s: %s", form, got)
		}
	}
}
