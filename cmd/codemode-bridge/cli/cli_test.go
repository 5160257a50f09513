package cli_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/cmd/codemode-bridge/cli"

	"github.com/spf13/cobra"
)

// What is written for a program is one line of JSON, and nothing in it is
// replaced.
func TestPrintJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	con := &cli.Console{Out: &out}
	if err := con.PrintJSON(map[string]string{"a": "<b>\u202e"}); err != nil {
		t.Fatal(err)
	}
	if want := "{\"a\":\"<b>\u202e\"}\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// A wrong number of arguments is wrong usage, and names the command.
func TestCountsOfArguments(t *testing.T) {
	t.Parallel()
	root, show := &cobra.Command{Use: "program"}, &cobra.Command{Use: "show id"}
	root.AddCommand(show)
	for _, row := range []struct {
		takes cobra.PositionalArgs
		args  []string
		want  string
	}{
		{cli.NoArgs, nil, ""},
		{cli.NoArgs, []string{"a"}, "show takes no arguments, not 1"},
		{cli.OneArg, []string{"a"}, ""},
		{cli.OneArg, nil, "show needs 1 argument"},
		{cli.OneArg, []string{"a", "b"}, "show takes at most 1 argument, not 2"},
		{cli.ExactArgs(2), []string{"a"}, "show needs 2 arguments"},
		{cli.RangeArgs(1, 2), []string{"a", "b", "c"}, "show takes at most 2 arguments, not 3"},
		{cli.MinArgs(1), []string{"a", "b"}, ""},
	} {
		err := row.takes(show, row.args)
		usage := (*cli.UsageError)(nil)
		if row.want == "" && err == nil {
			continue
		}
		if row.want == "" || !errors.As(err, &usage) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v, want %q", row.args, err, row.want)
		}
	}
}

// A path below the home folder is shown from there, and no other.
func TestHomeShort(t *testing.T) {
	t.Parallel()
	con := &cli.Console{Env: func(string) (string, bool) { return filepath.FromSlash("/home/ann"), true }}
	for path, want := range map[string]string{
		"/home/ann/x.json":  "~/x.json",
		"/home/anna/x.json": "/home/anna/x.json",
		"/etc/x.json":       "/etc/x.json",
	} {
		if got := con.HomeShort(filepath.FromSlash(path)); filepath.ToSlash(got) != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestOneOf(t *testing.T) {
	t.Parallel()
	if err := cli.OneOf("format", "csv", "json", "csv"); err != nil {
		t.Error(err)
	}
	err := cli.OneOf("format", "xml", "json", "csv")
	if want := `--format must be one of json, csv, not "xml"`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
