// Package upstreams converts the servers of a configuration for package upstream: how
// each is started or reached, within which limits, and in which box.
package upstreams

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"codemode-bridge/bridge/builtin"
	"codemode-bridge/bridge/config"
	"codemode-bridge/bridge/recorder"
	"codemode-bridge/bridge/upstream"
	"codemode-bridge/sandbox/confine"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options are what the specs need of the program. All are required.
type Options struct {
	Env      config.Env                           // says where the state of boxes is
	Launcher func() (string, error)               // the program that makes boxes
	Document func(*upstream.Spec, *config.Server) // makes a spec that of an OpenAPI document
}

// Specs converts the servers of a configuration, in the order of their names. They hold
// the secrets in clear.
func Specs(cfg *config.Config, o Options) []upstream.Spec {
	var all []upstream.Spec
	for _, name := range cfg.ServerNames() {
		s := cfg.Servers[name]
		calls, per := s.Rate.Split()
		spec := upstream.Spec{
			Name: name, Kind: upstream.Kind(s.Type), Disabled: s.Disabled,
			Command: s.Command.Reveal(), Args: config.Reveal(s.Args), Env: config.RevealMap(s.Env), PassEnv: s.PassEnv, Dir: s.Cwd.Reveal(),
			URL: s.URL.Reveal(), Headers: config.RevealMap(s.Headers),
			Limits: upstream.Limits{
				Timeout: time.Duration(s.Timeout), ConnectTimeout: time.Duration(s.ConnectTimeout), Concurrency: s.Concurrency,
				Rate: upstream.Rate{Calls: calls, Per: per}, MaxReply: int64(s.MaxReply),
			},
			IdleStop: time.Duration(s.IdleStop), Protocol: upstream.Protocol(s.Protocol), Allow: s.Tools.Allow, Deny: s.Tools.Deny,
			PerSession: s.PerSession,
			Asking:     upstream.Asking{NoElicitation: s.Elicitation == config.ElicitationDeny, Sampling: upstream.Sampling(s.Sampling), Roots: s.Roots},
		}
		spec.Wrong = s.WhyUnready()
		spec.Secrets = append(recorder.ArgSecrets(spec.Args), cfg.SecretTexts("/servers/"+name, "/mcpServers/"+name)...)
		spec.Box = o.box(cfg, s)
		if s.Type == config.KindOpenAPI && s.Unready == nil {
			o.Document(&spec, s)
		}
		if s.Type == config.KindBuiltin {
			spec.Kind = upstream.InProcess
			kind := s.Builtin
			spec.InProcess = func(context.Context, *slog.Logger) (*mcp.Server, error) {
				server, ok := builtin.New(kind)
				if !ok {
					return nil, fmt.Errorf("there is no built-in server %q", kind)
				}
				return server, nil
			}
		}
		all = append(all, spec)
	}
	return all
}

// box converts the box of a server for package upstream: the workspace is that of the
// configuration, or the folder that this bridge was started in. It is nil without a box.
// A box that can't be made keeps its server from starting.
func (o Options) box(cfg *config.Config, s *config.Server) *upstream.Box {
	if s.Confine == nil {
		return nil
	}
	here, err := os.Getwd()
	if err != nil {
		here = "" // then "workspace" needs evaluation.workspace, and says so
	}
	asked, err := cfg.Box(s, here)
	if err != nil {
		return &upstream.Box{Wrong: err.Error()}
	}
	b := &upstream.Box{Box: confine.Box{Write: asked.Write, Read: asked.Read, Run: asked.Run, Require: asked.Require}}
	b.Others = others(cfg, s, here, slices.Concat(b.Write, b.Read))
	b.Net.Any = asked.Net.Any
	for _, h := range asked.Net.Hosts {
		b.Net.Hosts = append(b.Net.Hosts, confine.Host{Name: h.Name, Port: h.Port})
	}
	if b.Launcher, err = o.Launcher(); err != nil {
		b.Wrong = err.Error()
	}
	if places, err := config.Paths(o.Env); err == nil {
		b.Store = filepath.Join(places.StateDir, "boxes-"+FileKey(cfg.File), s.Name)
	}
	return b
}

// others returns the folders that other servers in boxes may write and that have to do with
// the paths of this one's.
func others(cfg *config.Config, s *config.Server, here string, paths []string) (all []string) {
	for _, name := range cfg.ServerNames() {
		other := cfg.Servers[name]
		if name == s.Name || other.Disabled {
			continue
		}
		box, err := cfg.Box(other, here)
		if err != nil || box == nil { // the former does not start; the latter may write anything
			continue
		}
		for _, folder := range box.Write {
			if !slices.Contains(all, folder) && slices.ContainsFunc(paths, func(path string) bool {
				_, in := confine.Leads(path, folder)
				return in
			}) {
				all = append(all, folder)
			}
		}
	}
	return all
}

// BoxedHere reports whether a box depends on the folder that the bridge was started in.
func BoxedHere(cfg *config.Config, s *config.Server) bool {
	return s.Confine != nil && len(cfg.Evaluation.Workspace) == 0 && slices.Contains(slices.Concat(s.Confine.Write, s.Confine.Read), config.WorkspaceWord)
}

// FileKey is a short name for a configuration file, after which the folders that
// belong to it are named.
func FileKey(file string) string {
	sum := sha256.Sum256([]byte(file))
	return hex.EncodeToString(sum[:6])
}
