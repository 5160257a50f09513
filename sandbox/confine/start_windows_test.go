package confine

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// A program runs without the privileges of its user, and with low integrity where its box
// writes nothing.
func TestStart(t *testing.T) {
	for _, row := range []struct {
		box Box
		low bool
	}{
		{Box{}, true},
		{Box{Write: []string{t.TempDir()}}, false},
	} {
		var out bytes.Buffer
		p, err := row.box.Start("", func() *exec.Cmd {
			c := exec.Command("whoami", "/all")
			c.Stdout = &out
			return c
		})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Cmd.Wait()
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		const lowLabel = "S-1-16-4096"
		if got := strings.Contains(out.String(), lowLabel); got != row.low {
			t.Errorf("%+v: low integrity: %v, want %v:\n%s", row.box, got, row.low, out.String())
		}
		if strings.Contains(out.String(), "SeShutdownPrivilege") {
			t.Errorf("%+v: it has privileges:\n%s", row.box, out.String())
		}
		for step := range p.Steps {
			if p.Steps.On(step) {
				t.Errorf("%+v: %s counts as one that holds", row.box, step)
			}
		}
	}
}
