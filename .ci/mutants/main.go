// Command mutants proves that the test suite can fail. It seeds one fault at
// a time into a copy of the tree and runs the tests that have to notice.
//
//	go run ./.ci/mutants            all faults
//	go run ./.ci/mutants sandbox    only those whose name contains "sandbox"
//
// faults.txt, beside this file, lists the faults:
//
//	## name: what goes wrong, in words
//	file: path/of/the/file.go
//	test: ./the/package/... -run 'TestThatMustNotice'
//	--- old
//	the text to replace, which stands exactly once in the file
//	--- new
//	what replaces it
//	--- end
//
// "test" is what follows "go test". A fault is killed when that command fails
// with a test's own failure or by its time-out. It survives when the command
// passes; it is stale when the old text is not there exactly once or the
// mutated tree does not build, which proves nothing. The exit status is 0
// only if every fault was killed.
//
// Faults run in parallel, each in its own copy of the tree, which is made
// from the files that git knows or would add: the tree itself is only read.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

//go:embed faults.txt
var faultsText string

// A fault is one entry of faults.txt.
type fault struct {
	name, file string
	old, new   string
	test       []string // arguments of go test
	line       int      // where the entry starts
}

// A fate says what became of a fault.
type fate struct {
	word   string // killed, SURVIVED, STALE
	detail string
	took   time.Duration
}

const killed = "killed"

func main() {
	parallel := flag.Int("parallel", max(1, runtime.NumCPU()), "faults tried at the same time")
	timeout := flag.Duration("timeout", 3*time.Minute, "time for one fault, its build included")
	flag.Parse()

	faults, err := parseFaults(faultsText)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults.txt:", err)
		os.Exit(2)
	}
	if want := flag.Arg(0); want != "" {
		kept := faults[:0]
		for _, f := range faults {
			if strings.Contains(f.name, want) {
				kept = append(kept, f)
			}
		}
		faults = kept
	}
	if len(faults) == 0 {
		fmt.Fprintln(os.Stderr, "no such fault")
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	alive, err := run(ctx, faults, *parallel, *timeout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	fmt.Printf("%d faults, %d killed, %d not\n", len(faults), len(faults)-alive, alive)
	if alive > 0 {
		os.Exit(1)
	}
}

// run tries all faults, prints each one's fate as it becomes known, and
// returns how many were not killed.
func run(ctx context.Context, faults []fault, parallel int, timeout time.Duration) (alive int, err error) {
	root, err := output("git", "rev-parse", "--show-toplevel")
	if err != nil {
		return 0, err
	}
	root = strings.TrimSpace(root)
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)

	// The tree is read once, so that edits meanwhile change nothing here.
	clean := filepath.Join(scratch, "clean")
	if err := copyTree(root, clean); err != nil {
		return 0, fmt.Errorf("copying the tree: %w", err)
	}
	if err := untouched(ctx, clean, faults, timeout); err != nil {
		return 0, err
	}

	queue := make(chan fault)
	var (
		wg sync.WaitGroup
		mu sync.Mutex // guards alive, firstErr and standard output
	)
	var firstErr error
	for n := range min(parallel, len(faults)) {
		tree := filepath.Join(scratch, fmt.Sprintf("tree%d", n))
		wg.Go(func() {
			err := copyFiles(clean, tree)
			for f := range queue {
				var result fate
				if err == nil {
					result, err = try(ctx, tree, f, timeout)
				}
				mu.Lock()
				switch {
				case err != nil:
					firstErr = errors.Join(firstErr, fmt.Errorf("%s: %w", f.name, err))
				case result.word != killed:
					alive++
					fmt.Printf("%-8s %-34s %5.1fs  %s\n", result.word, f.name, result.took.Seconds(), result.detail)
				default:
					fmt.Printf("%-8s %-34s %5.1fs\n", result.word, f.name, result.took.Seconds())
				}
				mu.Unlock()
			}
		})
	}
	for _, f := range faults {
		queue <- f
	}
	close(queue)
	wg.Wait()
	return alive, errors.Join(firstErr, ctx.Err())
}

// untouched runs the test commands on the tree as it is: a command that fails without
// any fault would seem to kill every one, and one that runs no tests proves nothing.
func untouched(ctx context.Context, tree string, faults []fault, timeout time.Duration) error {
	seen := make(map[string]bool)
	for _, f := range faults {
		command := strings.Join(f.test, " ")
		if seen[command] {
			continue
		}
		seen[command] = true
		out, err := goTest(ctx, tree, f.test, timeout)
		if err != nil {
			return fmt.Errorf("go test %s fails without a fault: %w\n%s", command, err, out)
		}
		if !testsRan(out) {
			return fmt.Errorf("go test %s runs no test:\n%s", command, out)
		}
	}
	return nil
}

// try seeds one fault into tree, runs its tests, and puts the file back.
func try(ctx context.Context, tree string, f fault, timeout time.Duration) (result fate, err error) {
	start := time.Now()
	defer func() { result.took = time.Since(start) }()

	path := filepath.Join(tree, filepath.FromSlash(f.file))
	before, err := os.ReadFile(path)
	if err != nil {
		return fate{word: "STALE", detail: err.Error()}, nil
	}
	if n := bytes.Count(before, []byte(f.old)); n != 1 {
		return fate{word: "STALE", detail: fmt.Sprintf("faults.txt:%d: the old text stands %d times in %s", f.line, n, f.file)}, nil
	}
	after := bytes.Replace(before, []byte(f.old), []byte(f.new), 1)
	if err := os.WriteFile(path, after, 0o644); err != nil {
		return fate{}, err
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, before, 0o644)) }()

	out, testErr := goTest(ctx, tree, f.test, timeout)
	switch {
	case testErr == nil:
		return fate{word: "SURVIVED", detail: "go test " + strings.Join(f.test, " ") + " passes"}, nil
	case ctx.Err() != nil:
		return fate{}, ctx.Err()
	case !testsFailed(out) && !errors.Is(testErr, context.DeadlineExceeded):
		return fate{word: "STALE", detail: "the mutated tree does not build:\n" + out}, nil
	}
	return fate{word: killed}, nil
}

// testsRan reports whether go test's output shows a package that passed with
// tests.
func testsRan(out string) bool {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "ok ") && !strings.Contains(line, "[no tests to run]") {
			return true
		}
	}
	return false
}

// testsFailed reports whether go test's output shows a test that ran and
// failed, in contrast to a tree that does not build.
func testsFailed(out string) bool {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "[build failed]") || strings.Contains(line, "[setup failed]") {
			return false
		}
	}
	return strings.Contains(out, "FAIL")
}

// goTest runs "go test" in tree with a bound on its time. The error wraps
// context.DeadlineExceeded if the time ran out.
func goTest(ctx context.Context, tree string, args []string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// go test's own time-out is the shorter one: it ends the test binary and
	// prints where it hung.
	all := append([]string{"test", "-count=1", "-failfast", "-timeout", (timeout * 3 / 4).String()}, args...)
	cmd := exec.CommandContext(ctx, "go", all...)
	cmd.Dir = tree
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(out), err
}

// copyTree copies the files that git knows or would add from root to dst.
func copyTree(root, dst string) error {
	list, err := output("git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		err := copyFile(filepath.Join(root, name), filepath.Join(dst, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // deleted, not yet committed
			return err
		}
	}
	return nil
}

// copyFiles copies every file below src to dst.
func copyFiles(src, dst string) error {
	return filepath.WalkDir(src, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		return copyFile(path, filepath.Join(dst, name))
	})
}

func copyFile(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// output runs a command and returns its standard output.
func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running %s: %w", name, err)
	}
	return string(out), nil
}
