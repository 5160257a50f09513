package policycmd

import (
	"context"
	"strings"
	"sync"
	"testing"

	"codemode-bridge/bridge/config"
)

// What a file includes is followed like the file, other includes too; where a document becomes stricter than the file,
// the document holds, and somebody is told.
func TestWatch(t *testing.T) {
	folder, l := t.TempDir(), loader(t)
	write(t, folder, "team.json", `{"newTools": "ask"}`)
	path := write(t, folder, "c.json", `{"include": ["team.json"], "newTools": "quarantine", "changedTools": "ask", "servers": {"s": {"command": "x"}}}`)
	first, err := l.File(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	changed, wrong := make(chan *config.Config, 100), make(chan error, 100)
	var ended sync.WaitGroup
	ended.Go(func() {
		Watch{
			Load:    func(bool) (*config.Config, []string, error) { cfg, err := l.File(ctx, path, ""); return cfg, nil, err },
			Changed: func(cfg *config.Config, _ []string) { changed <- cfg },
			Wrong:   func(err error) { wrong <- err },
		}.Run(ctx, first)
	})
	defer ended.Wait()
	defer stop()

	write(t, folder, "team.json", `{"newTools": "ask", "changedTools": "quarantine"}`)
	if cfg := <-changed; cfg.ChangedTools != config.ReactionQuarantine || cfg.NewTools != config.ReactionQuarantine {
		t.Errorf("changedTools is %s, newTools %s", cfg.ChangedTools, cfg.NewTools)
	}
	for err := range wrong { // half a file may have been read before
		if strings.Contains(err.Error(), "c.json:1:54: this would loosen") {
			break
		}
	}
	// another document is included, and followed
	write(t, folder, "more.json", `{"newTools": "allow"}`)
	write(t, folder, "c.json", `{"include": ["more.json"], "servers": {"s": {"command": "x"}}}`)
	for cfg := range changed {
		if cfg.NewTools == config.ReactionAllow {
			break
		}
	}
	write(t, folder, "more.json", `{"newTools": "ask"}`)
	for cfg := range changed {
		if cfg.NewTools == config.ReactionAsk {
			break
		}
	}
}
