package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/canon"
	"codemode-bridge/profiles"
)

const (
	cacheFile    = "catalog.json"
	cacheVersion = 1
	maxCache     = 64 << 20 // bytes of the file
	maxCached    = 100_000  // tools
)

// The file, see the package comment.
type (
	cached struct {
		Version int             `json:"version"`
		Digest  string          `json:"digest"`
		Servers json.RawMessage `json:"servers"`
	}
	cachedServer struct {
		Name      string       `json:"name"`
		Tools     []cachedTool `json:"tools"`
		Resources bool         `json:"resources,omitempty"`
		Prompts   bool         `json:"prompts,omitempty"`
	}
	cachedTool struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema,omitempty"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		ReadOnly    *bool           `json:"readOnlyHint,omitempty"`
		Destructive *bool           `json:"destructiveHint,omitempty"`
		Idempotent  *bool           `json:"idempotentHint,omitempty"`
		OpenWorld   *bool           `json:"openWorldHint,omitempty"`
	}
)

func hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// Save writes the catalogue's servers to the cache folder, which is made if need
// be, readable by its owner only. The file is replaced as a whole or not at all.
// Tools whose definition can't be kept exactly (schemas that are no JSON, texts
// that are no UTF-8) are left out.
func (c *Catalog) Save(dir string) error {
	servers := []cachedServer{}
	for _, t := range c.tools[c.own:] {
		if len(servers) == 0 || servers[len(servers)-1].Name != t.Server {
			one := cachedServer{Name: t.Server, Tools: []cachedTool{}}
			if i := slices.IndexFunc(c.offers, func(o offer) bool { return o.server == t.Server }); i >= 0 {
				one.Resources, one.Prompts = c.offers[i].resources, c.offers[i].prompts
			}
			servers = append(servers, one)
		}
		if !storable(t) {
			continue
		}
		s := &servers[len(servers)-1]
		s.Tools = append(s.Tools, cachedTool{
			Name: t.Name, Title: t.Title, Description: t.Description, Input: t.Input, Output: t.Output,
			ReadOnly: t.Annotations.ReadOnly, Destructive: t.Annotations.Destructive,
			Idempotent: t.Annotations.Idempotent, OpenWorld: t.Annotations.OpenWorld,
		})
	}
	body, err := encode(servers)
	if err != nil {
		return fmt.Errorf("saving the catalogue: %w", err)
	}
	file, err := encode(cached{cacheVersion, digestOf(body), body})
	if err != nil {
		return fmt.Errorf("saving the catalogue: %w", err)
	}
	if len(file) > maxCache {
		return fmt.Errorf("saving the catalogue: %d bytes are more than the %d that are kept", len(file), maxCache)
	}
	if err := replace(dir, file); err != nil {
		return fmt.Errorf("saving the catalogue: %w", err)
	}
	return nil
}

// encode writes JSON without HTML escapes, which keeps schemas as they are except
// for white space.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func storable(t *Tool) bool {
	for _, s := range []string{t.Server, t.Name, t.Title, t.Description} {
		if !utf8.ValidString(s) {
			return false
		}
	}
	for _, raw := range []json.RawMessage{t.Input, t.Output} {
		if len(raw) > 0 && (!json.Valid(raw) || !utf8.Valid(raw) || string(bytes.TrimSpace(raw)) == "null") {
			return false
		}
	}
	return true
}

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func replace(dir string, content []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, cacheFile), content)
}

// Load reads what Save wrote; all servers are Stale. A file that is not there
// is an error for which errors.Is(err, fs.ErrNotExist) holds. A file that is
// damaged, of another version or not ours gives an error and none of its content:
// the caller goes on without it.
func Load(dir string) ([]Server, error) {
	servers, err := load(filepath.Join(dir, cacheFile))
	if err != nil {
		return nil, fmt.Errorf("loading the catalogue of the last run: %w", err)
	}
	return servers, nil
}

func load(path string) ([]Server, error) {
	raw, err := atomicfile.ReadUnlinked(path, maxCache)
	if err != nil {
		return nil, err
	}
	return parseCache(raw)
}

func parseCache(raw []byte) ([]Server, error) {
	var file cached
	if err := canon.Decode(raw, &file); err != nil {
		return nil, err
	}
	if file.Version != cacheVersion {
		return nil, fmt.Errorf("version %d, want %d", file.Version, cacheVersion)
	}
	if digestOf(file.Servers) != file.Digest {
		return nil, errors.New("the content does not match its digest")
	}
	var kept []cachedServer
	if err := canon.Decode(file.Servers, &kept); err != nil {
		return nil, err
	}
	servers := make([]Server, 0, len(kept))
	seen := map[string]bool{}
	tools := 0
	for _, k := range kept {
		if k.Name == "" || seen[k.Name] {
			return nil, fmt.Errorf("a server without a name of its own: %q", k.Name)
		}
		seen[k.Name] = true
		if tools += len(k.Tools); tools > maxCached {
			return nil, fmt.Errorf("more than %d tools", maxCached)
		}
		s := Server{Name: k.Name, Stale: true, Resources: k.Resources, Prompts: k.Prompts}
		for _, t := range k.Tools {
			s.Tools = append(s.Tools, Definition{
				Name: t.Name, Title: t.Title, Description: t.Description, Input: t.Input, Output: t.Output,
				Annotations: profiles.Annotations{
					ReadOnly: t.ReadOnly, Destructive: t.Destructive, Idempotent: t.Idempotent, OpenWorld: t.OpenWorld,
				},
			})
		}
		if !slices.IsSortedFunc(s.Tools, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) }) {
			return nil, fmt.Errorf("the tools of server %q are not in order", k.Name)
		}
		servers = append(servers, s)
	}
	return servers, nil
}
