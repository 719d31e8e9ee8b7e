package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestOnlyClassifiedErrorsSpeakToStrangers(t *testing.T) {
	secret := errors.New("password=hunter2")
	cases := map[string]struct {
		err  error
		code Code
		says string
	}{
		"an unclassified error is internal":    {secret, Internal, "internal error"},
		"a bug is internal":                    {Bug("lease %s released twice", "hunter2"), Internal, "internal error"},
		"a classified one keeps its message":   {New(NotFound, "op", "no such table"), NotFound, "no such table"},
		"its cause stays inside":               {Wrap(secret, Invalid, "op", "not a number"), Invalid, "not a number"},
		"so does what was added above":         {fmt.Errorf("hunter2: %w", New(Denied, "op", "not yours")), Denied, "not yours"},
		"a caller who left is not our fault":   {fmt.Errorf("x: %w", context.Canceled), Canceled, "cancelled"},
		"an internal one is internal, wrapped": {fmt.Errorf("x: %w", Wrap(secret, Internal, "op", "hunter2")), Internal, "internal error"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Public(c.err)
			if got.Code != c.code || !strings.Contains(got.Msg, c.says) {
				t.Errorf("%s: %q, want %s: %q", got.Code, got.Msg, c.code, c.says)
			}
			if strings.Contains(got.Error(), "hunter2") {
				t.Errorf("a secret got out: %q", got.Error())
			}
			if CodeOf(c.err) != c.code {
				t.Errorf("CodeOf is %s", CodeOf(c.err))
			}
		})
	}
}

func TestEveryCodeHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Codes() {
		if name := c.String(); seen[name] {
			t.Errorf("two codes are named %s", name)
		} else {
			seen[name] = true
		}
	}
	if len(seen) != len(names) {
		t.Errorf("%d codes are listed, %d have names", len(seen), len(names))
	}
	if got := Code(99).String(); got != "internal" {
		t.Errorf("an unknown code is %q", got)
	}
}

func TestErrorForTheLogHasTheCause(t *testing.T) {
	err := Wrap(errors.New("disk full"), Internal, "lakecopy.Copy", "could not write")
	if got := err.Error(); got != "lakecopy.Copy: could not write: disk full" {
		t.Errorf("%q", got)
	}
	if !errors.Is(err, err.Err) {
		t.Error("the cause cannot be found")
	}
}
