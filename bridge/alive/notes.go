package alive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codemode-bridge/bridge/atomicfile"
)

// A note is what a process tells the others that share its folder.
type note struct {
	By   string `json:"by"`
	Text string `json:"text"`
}

// noteFile is where a note is kept: beside the folder, since there every file is a
// process.
func noteFile(dir, about string) string {
	sum := sha256.Sum256([]byte(about))
	return dir + infix + hex.EncodeToString(sum[:8]) + suffix
}

// infix and suffix stand around the digest in the name of a note's file.
const infix, suffix = "-note-", ".json"

// Tell leaves a note about something for the others: it holds as long as the process
// with that name runs, or until somebody else says something about it.
func Tell(dir, name, about, text string) error {
	line, err := json.Marshal(note{name, text})
	if err == nil {
		err = atomicfile.Write(noteFile(dir, about), line)
	}
	if err != nil {
		return fmt.Errorf("telling the other processes: %w", err)
	}
	return nil
}

// Told returns what a process that still runs has last said about something; "" if
// there is nothing.
func Told(dir, about string) string { return noted(dir, noteFile(dir, about)) }

// noted returns what a note says, if the process that left it still runs.
func noted(dir, file string) string {
	var n note
	line, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(line, &n) != nil || n.By == "" || Gone(dir, n.By) {
		return ""
	}
	return n.Text
}

// Forget takes back what was told about something.
func Forget(dir, about string) error {
	err := os.Remove(noteFile(dir, about))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Notes returns the texts of all notes of processes that still run, in no order.
func Notes(dir string) []string {
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, filepath.Base(dir)+infix) && strings.HasSuffix(name, suffix) {
			if text := noted(dir, filepath.Join(filepath.Dir(dir), name)); text != "" {
				all = append(all, text)
			}
		}
	}
	return all
}
