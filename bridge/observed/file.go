package observed

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"codemode-bridge/bridge/atomicfile"
	"codemode-bridge/bridge/canon"
)

const (
	fileName    = "observed.json"
	fileVersion = 1
)

// The file, see the package comment.
type (
	file struct {
		Version int             `json:"version"`
		Digest  string          `json:"digest"`
		Tools   json.RawMessage `json:"tools"`
	}
	kept struct {
		Server string `json:"server"`
		Name   string `json:"name"`
		Digest string `json:"digest"`
		shapes
	}
)

// listLocked is what goes into the file, the tools that answered longest ago
// first.
func (s *Store) listLocked() []kept {
	type dated struct {
		kept
		last int64
	}
	all := make([]dated, 0, len(s.tools))
	for key, e := range s.tools {
		all = append(all, dated{kept{key.server, key.tool, e.digest, e.seen}, e.last})
	}
	slices.SortFunc(all, func(a, b dated) int {
		return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name))
	})
	list := make([]kept, len(all))
	for i := range all {
		list[i] = all[i].kept
	}
	return list
}

// takeLocked joins what stands in the file to what is known. Where the two have
// different definitions of a tool, this process has the present one.
func (s *Store) takeLocked(list []kept) {
	for i, k := range list {
		key := name{k.Server, k.Name}
		e := s.tools[key]
		if e == nil {
			e = &entry{digest: k.Digest, last: int64(i - len(list))} // before all answers
			s.tools[key] = e
		}
		if e.digest == k.Digest {
			s.learnLocked(e, k.shapes)
		}
	}
}

// save replaces the file as a whole, or not at all.
func save(dir string, tools []kept) error {
	body, err := json.Marshal(tools)
	if err != nil {
		return err
	}
	content, err := json.Marshal(file{fileVersion, digest(body), body})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, fileName), content)
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// load reads the file. If it returns an error, it returns no shapes.
func load(dir string) ([]kept, error) {
	raw, err := atomicfile.ReadUnlinked(filepath.Join(dir, fileName), maxFile)
	if err != nil {
		return nil, err
	}
	return parse(raw)
}

func parse(raw []byte) ([]kept, error) {
	var content file
	if err := canon.Decode(raw, &content); err != nil {
		return nil, err
	}
	if content.Version != fileVersion {
		return nil, fmt.Errorf("version %d, want %d", content.Version, fileVersion)
	}
	if digest(content.Tools) != content.Digest {
		return nil, errors.New("the content does not match its digest")
	}
	var tools []kept
	if err := canon.Decode(content.Tools, &tools); err != nil {
		return nil, err
	}
	if len(tools) > maxTools {
		return nil, fmt.Errorf("more than %d tools", maxTools)
	}
	for _, t := range tools {
		if t.Server == "" || t.Name == "" || !t.JSON.sound(maxDepth) || !t.Value.sound(maxDepth) {
			return nil, fmt.Errorf("the shapes of %q of server %q are none that were made here", t.Name, t.Server)
		}
	}
	return tools, nil
}
