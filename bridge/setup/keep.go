package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"codemode-bridge/bridge/atomicfile"
)

// fleeting matches the paths of what package managers keep for as long as they like:
// the caches of npx, pnpm dlx, yarn dlx and bunx, and the store of pnpm, whose folders
// an update replaces.
var fleeting = regexp.MustCompile(`/(_npx|dlx|dlx-[^/]*|bunx-[^/]*|\.pnpm)/(.*/)?node_modules/`)

// A Copy is of the bridge's programs, into a folder where they stay. A client that
// starts the bridge through npx would have npm look at the folder that the client is in: a
// repository's node_modules/.bin comes before the PATH there, and its .npmrc is
// read. A copy is started by its path and needs no Node.
type Copy struct {
	// From is the folder that the programs are in, Into the one that they are copied to.
	From, Into string
	// Program is the one that clients start, Worker the one beside it.
	Program, Worker string
}

// Stays returns the copy that has to be made before a client can rely on the program at
// path; nil if the program stays where it is. Data is the bridge's folder for such
// copies.
func Stays(path, version, data string) (*Copy, error) {
	if !fleeting.MatchString(filepath.ToSlash(path)) {
		return nil, nil
	}
	if data == "" {
		return nil, fmt.Errorf("%s may be deleted by what started it, and the home folder that could keep a copy is not known", path)
	}
	return &Copy{
		From: filepath.Dir(path), Into: filepath.Join(data, "programs", version),
		Program: filepath.Base(path), Worker: "codemode-worker" + filepath.Ext(path),
	}, nil
}

// Path is where the program is once the copy is made.
func (c *Copy) Path() string { return filepath.Join(c.Into, c.Program) }

// Words say what the copy is for; short writes a path for people.
func (c *Copy) Words(short func(path string) string) string {
	return fmt.Sprintf("what started this program keeps it in a cache, which may be emptied: clients start a copy, in %s", short(c.Into))
}

// Make makes the copy, unless it is there already. The worker comes first: a program is
// never there without it.
func (c *Copy) Make() error {
	if err := os.MkdirAll(c.Into, 0o755); err != nil {
		return fmt.Errorf("copying the programs: %w", err)
	}
	for _, name := range []string{c.Worker, c.Program} {
		text, err := os.ReadFile(filepath.Join(c.From, name))
		if err != nil {
			return fmt.Errorf("copying the programs: %w", err)
		}
		to := filepath.Join(c.Into, name)
		if same, err := holds(to, text); err != nil || same {
			if err != nil {
				return fmt.Errorf("copying the programs: %w", err)
			}
			continue // it may be running, which some systems do not let be replaced
		}
		if err := atomicfile.Replace(to, text, atomicfile.Options{Mode: 0o755}); err != nil {
			return fmt.Errorf("copying the programs: %w", err)
		}
	}
	return nil
}

// holds reports whether a file that can be executed has this content.
func holds(path string, text []byte) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if executable := info.Mode()&0o111 != 0 || strings.HasSuffix(path, ".exe"); !executable || info.Size() != int64(len(text)) {
		return false, nil
	}
	there, err := io.ReadAll(f)
	return bytes.Equal(there, text), err
}
