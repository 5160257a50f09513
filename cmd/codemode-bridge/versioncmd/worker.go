package versioncmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// askTime bounds the question to a worker.
const askTime = 10 * time.Second

// AskWorker asks the worker at a path which version it is.
func AskWorker(ctx context.Context, path string) (b Build, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "version")
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return b, fmt.Errorf("asking the worker for its version: %w", err)
	}
	var says struct{ Version, Commit string }
	if len(out) > 4<<10 || json.NewDecoder(bytes.NewReader(out)).Decode(&says) != nil || says.Version == "" {
		return b, errors.New("the worker does not say which version it is")
	}
	return Build{says.Version, says.Commit}, nil
}
