package statuscmd_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codemode-bridge/bridge/instance"
	"codemode-bridge/bridge/replica"
	"codemode-bridge/cmd/codemode-bridge/cli"
	"codemode-bridge/cmd/codemode-bridge/statuscmd"
)

// Each `serve` of the configuration is shown with where it is and what it refused, until
// it ends; those of other configurations are named.
func TestServing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "serving")
	wrong := ""
	var replicas []replica.Replica
	var unread error
	status := func(args ...string) (string, string) {
		t.Helper()
		var out, errs bytes.Buffer
		con := &statuscmd.Bridge{
			Console:  &cli.Console{Out: &out, Err: &errs},
			File:     func() (string, error) { return "/etc/ours.json", nil },
			Serving:  func() (string, error) { return dir, nil },
			Folders:  func() (instance.Folders, error) { return instance.Folders{}, nil },
			OnDisk:   func() (string, string) { return wrong, "codemode-bridge check" },
			Replicas: func(context.Context) ([]replica.Replica, error) { return replicas, unread },
		}
		c := con.Command()
		c.SetArgs(args)
		if err := c.Execute(); err != nil {
			t.Fatal(err)
		}
		return out.String(), errs.String()
	}
	says := func(text, want string) {
		t.Helper()
		if !strings.Contains(text, want) {
			t.Errorf("it says\n%s\nand not %q", text, want)
		}
	}
	out, errs := status()
	says(out, "no bridge runs with this configuration\n")
	if errs != "" {
		t.Errorf("it also says %q", errs)
	}
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)
	replicas = []replica.Replica{
		{Name: "web-a", Machine: "web", Version: "1.2.3", Address: "http://10.0.0.1:7420/mcp", Since: at, Until: at.Add(time.Minute)},
		{Name: "web-b", Machine: "web", Version: "1.2.3", Since: at, Until: at.Add(time.Minute), Gone: true},
	}
	out, _ = status()
	says(out, "2 bridges share the store:\n  web-a on web, version 1.2.3, since 2026-11-23 12:00:00, serves http://10.0.0.1:7420/mcp: alive until 12:01:00 by the database's clock\n")
	says(out, "  web-b on web, version 1.2.3, since 2026-11-23 12:00:00: ended without a word, was alive until 12:01:00\n")
	replicas, unread = replicas[:1], errors.New("the database cannot be reached")
	out, errs = status()
	says(out, "one bridge uses the store:\n")
	says(errs, "the database cannot be reached")
	replicas, unread = nil, nil
	ours, err := statuscmd.Announce(dir, statuscmd.Serving{PID: 7, Version: "1.2.3", Since: time.Now(), File: "/etc/ours.json", Endpoint: "http://127.0.0.1:7420/mcp", Page: "http://127.0.0.1:7421"})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := statuscmd.Announce(dir, statuscmd.Serving{PID: 8, File: "/etc/theirs.json", Endpoint: "http://127.0.0.1:7520/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	out, errs = status()
	says(out, "process 7, version 1.2.3, since ")
	says(out, ": serves http://127.0.0.1:7420/mcp, page at http://127.0.0.1:7421\n")
	says(errs, "bridges serve other configurations: /etc/theirs.json; codemode-bridge status --config FILE shows one\n")
	if strings.Contains(out+errs, "refused") || strings.Contains(out, "7520") {
		t.Errorf("it says\n%s%s", out, errs)
	}

	if err := ours.Refused("ours.json:1:2: unknown key"); err != nil {
		t.Fatal(err)
	}
	wrong = "ours.json:1:2: unknown key"
	_, errs = status()
	says(errs, "it goes on with the last good configuration; the one on disk was refused: ours.json:1:2: unknown key\n")
	says(errs, "the configuration on disk: ours.json:1:2: unknown key\ndo: codemode-bridge check\n")
	out, _ = status("--json")
	says(out, `"refused":"ours.json:1:2: unknown key"`)
	says(out, `"configuration":"ours.json:1:2: unknown key"`)
	if err := ours.Refused(""); err != nil {
		t.Fatal(err)
	}
	if _, errs = status(); strings.Contains(errs, "refused") {
		t.Errorf("after the file was put right it says\n%s", errs)
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	out, _ = status()
	says(out, "no bridge runs with this configuration\n")
	var none *statuscmd.Announcement
	if none.Refused("x") != nil || none.Close() != nil {
		t.Error("no announcement announces something")
	}
}
