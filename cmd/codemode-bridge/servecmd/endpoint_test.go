package servecmd

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"codemode-bridge/bridge/certificate"
)

func TestPageHint(t *testing.T) {
	if hint := PageHint(fmt.Errorf("serving the approval page: %w", &certificate.Error{File: "a", Err: errors.New("gone")})); !strings.Contains(hint, "approvals.tls") {
		t.Error(hint)
	}
	if hint := PageHint(errors.New("address already in use")); !strings.Contains(hint, "approvals.listen") {
		t.Error(hint)
	}
}
