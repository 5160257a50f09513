//go:build real

package main_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

const olderVersion = "0.0.1"

// olderPrograms are the programs of the release before: these, without the last migration
// of the shared store and with an older version. OLDER_BIN names the folder of those of
// another release.
func olderPrograms(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("OLDER_BIN"); bin != "" {
		return bin
	}
	file := filepath.Join(moduleRoot(t), "bridge", "pgstore", "schema.go")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	last := regexp.MustCompile(`(?m)^(var migrations = .*), \w+\}$`)
	if !last.Match(source) {
		t.Fatalf("%s has no list of migrations", file)
	}
	dir := t.TempDir()
	older, overlay := filepath.Join(dir, "schema.go"), filepath.Join(dir, "overlay.json")
	mustWrite(t, older, string(last.ReplaceAll(source, []byte("$1}"))))
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{file: older}})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, overlay, string(text))
	return stamped(t, olderVersion, olderVersion, "-overlay", overlay)
}

// Bridges of the release before are replaced under load, one after the other: those that
// are left go on with the schema that the first new one makes, and old and new take each
// other's runs over.
func TestRealUpdate(t *testing.T) {
	t.Parallel()
	bin := olderPrograms(t)
	older := func(m *member) { m.bin = bin }
	f := newFleet(t, older, older, older)
	was := f.schema()
	load := f.load(2, rand.Uint64())
	first, second := f.bridges[0], f.bridges[1]
	update := func(m *member) func() { return func() { m.bin = programs(t) } }
	f.survives(first, faultOf("ended"), update(first))
	if is := f.schema(); is <= was {
		t.Errorf("the new release has the schema %d, the old one had %d", is, was)
	}
	f.survives(first, faultOf("killed"), func() {})       // the old ones take over from the new one
	f.survives(second, faultOf("killed"), update(second)) // and the new one from them
	if done, _ := load.finish(); done == 0 {
		t.Error("the load has done nothing")
	}
	if before, now := f.versionOf(bin), f.versionOf(programs(t)); before != now { // or OLDER_BIN is of the same
		f.isOf(map[string]int{before: 1, now: 2})
	}
	for _, m := range f.bridges { // the last one is of the release before
		if said := m.does("", "audit", "verify"); !strings.Contains(said, "whole") {
			t.Errorf("the log, to %s: %s", m.name, said)
		}
	}
}

// isOf checks how many bridges of each version are alive.
func (f *fleet) isOf(want map[string]int) {
	f.Helper()
	versions := map[string]int{}
	for _, one := range f.replicas() {
		if !one.Gone {
			versions[one.Version]++
		}
	}
	if !maps.Equal(versions, want) {
		f.Errorf("the bridges are of %v, want %v: %+v", versions, want, f.replicas())
	}
}

func faultOf(name string) fault {
	return faults[slices.IndexFunc(faults, func(f fault) bool { return f.name == name })]
}

// schema is the version of the store's tables.
func (f *fleet) schema() (version int) {
	f.Helper()
	conn, err := pgx.Connect(f.Context(), f.server.URL("postgres", "fleet"))
	if err != nil {
		f.Fatal(err)
	}
	defer conn.Close(f.Context())
	if err := conn.QueryRow(f.Context(), "SELECT value::int FROM meta WHERE name = 'version'").Scan(&version); err != nil {
		f.Fatal(err)
	}
	return version
}

// versionOf is what the programs of a folder say that they are.
func (f *fleet) versionOf(bin string) string {
	f.Helper()
	c := f.bridges[0].commandLine
	c.bin = bin
	var is struct{ Version string }
	if err := json.Unmarshal([]byte(c.does("", "version", "--json")), &is); err != nil {
		f.Fatal(err)
	}
	return is.Version
}
