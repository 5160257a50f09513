package alive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

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
	return dir + "-note-" + hex.EncodeToString(sum[:8]) + ".json"
}

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
func Told(dir, about string) string {
	var n note
	line, err := os.ReadFile(noteFile(dir, about))
	if err != nil || json.Unmarshal(line, &n) != nil || n.By == "" || Gone(dir, n.By) {
		return ""
	}
	return n.Text
}
