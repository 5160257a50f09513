package web

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codemode-bridge/sandbox/wire"
)

// engineOf has the sum of what scripts run in, by wire.Engine. Whoever changes that
// sees this test fail, and decides whether scripts can tell the difference. If they
// can, a paused run must not go on in it, and wire.Engine gets another name. Either
// way the new sum goes here.
var engineOf = map[string]string{
	"3": "490d922177bd9605",
}

func TestEngineIsNamed(t *testing.T) {
	sum := sha256.New()
	names, err := filepath.Glob("prelude/*.js")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %d\n%s\n", name, len(text), text)
	}
	mod, err := os.Open("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	defer mod.Close()
	libraries := []string{"github.com/dop251/goja", "github.com/dop251/goja_nodejs", "github.com/evanw/esbuild", "github.com/dlclark/regexp2"}
	found := 0
	for lines := bufio.NewScanner(mod); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && slices.Contains(libraries, words[0]) {
			found++
			io.WriteString(sum, words[0]+" "+words[1]+"\n")
		}
	}
	if found < 3 {
		t.Fatalf("%d of the libraries are in go.mod", found)
	}
	if got := hex.EncodeToString(sum.Sum(nil)[:8]); engineOf[wire.Engine] != got {
		t.Errorf("engine %s is %s, not %s: can a script tell the difference? Then give wire.Engine another name", wire.Engine, got, engineOf[wire.Engine])
	}
}
