package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// indented is a value as a file of JSON.
func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}

func digest(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// The parts of a bill of materials, as CycloneDX 1.6 has it.
type (
	bom struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber,omitempty"`
		Version      int          `json:"version"`
		Metadata     bomMetadata  `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	bomMetadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Purl       string     `json:"purl,omitempty"`
		Hashes     []bomHash  `json:"hashes,omitempty"`
		Licenses   []any      `json:"licenses,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	bomHash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

// materials is the bill of materials of the programs for a platform: the modules that
// each links, with the checksum that Go's checksum database has for it, as the
// programs themselves tell them.
func (r *release) materials(p platform, programs []entry) ([]byte, error) {
	self := component{
		Type: "application", Ref: "release@" + r.version, Name: "codemode-bridge", Version: r.version,
		Licenses:   []any{map[string]any{"license": map[string]string{"id": license}}},
		Properties: []property{{"codemode-bridge:commit", r.commit}, {"codemode-bridge:platform", p.String()}},
	}
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: bomMetadata{r.time.Format("2006-01-02T15:04:05Z"), self}}
	modules := map[string]component{}
	whole := dependency{Ref: self.Ref}
	for _, program := range programs {
		info, err := buildinfo.Read(bytes.NewReader(program.text))
		if err != nil {
			return nil, fmt.Errorf("reading what %s for %s links: %w", program.name, p, err)
		}
		ref := program.name + "@" + r.version
		b.Components = append(b.Components, component{Type: "application", Ref: ref, Name: program.name, Version: r.version, Hashes: []bomHash{{"SHA-256", digest(program.text)}}})
		whole.On = append(whole.On, ref)
		version := strings.TrimPrefix(info.GoVersion, "go")
		std := component{Type: "library", Ref: "pkg:golang/stdlib@" + version, Name: "stdlib", Version: version, Purl: "pkg:golang/stdlib@" + version}
		modules[std.Ref] = std
		links := dependency{Ref: ref, On: []string{std.Ref}}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if strings.HasPrefix(m.Path, ".") {
				continue // a folder of this repository
			}
			purl := "pkg:golang/" + m.Path + "@" + m.Version
			c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, Purl: strings.ReplaceAll(purl, "+", "%2B")}
			if m.Sum != "" {
				c.Properties = []property{{"go:sum", m.Sum}}
			}
			modules[purl] = c
			links.On = append(links.On, purl)
		}
		slices.Sort(links.On)
		b.Dependencies = append(b.Dependencies, links)
	}
	for _, ref := range sorted(modules) {
		b.Components = append(b.Components, modules[ref])
	}
	b.Dependencies = append(b.Dependencies, whole)
	slices.SortFunc(b.Dependencies, func(a, b dependency) int { return cmp.Compare(a.Ref, b.Ref) })
	text, err := indented(b)
	if err != nil {
		return nil, err
	}
	// The number is another one for every other content, and the same for the same.
	b.Serial = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, text).String()
	return indented(b)
}

// provenance says what was built from what, as an in-toto statement with SLSA's
// provenance. Nobody has signed it: it is what whoever builds the same commit anew can
// compare with, and what a signer would sign.
func (r *release) provenance(files map[string][]byte, some []platform) ([]byte, error) {
	goversion, err := output(r.root, "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	type resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest,omitempty"`
	}
	var subjects []resource
	for _, name := range sorted(files) {
		subjects = append(subjects, resource{Name: name, Digest: map[string]string{"sha256": digest(files[name])}})
	}
	var names []string
	for _, p := range some {
		names = append(names, p.String())
	}
	source := resource{Name: "source", Digest: map[string]string{"gitCommit": strings.TrimSuffix(r.commit, "-modified")}}
	if r.repository != "" {
		source.URI = "git+" + r.repository + "@" + r.commit
	}
	external := map[string]any{"version": r.version, "platforms": names, "sourceDateEpoch": r.time.Unix()}
	if r.repository != "" {
		external["repository"] = r.repository
	}
	return indented(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":            "urn:codemode-bridge:make-release:1",
				"externalParameters":   external,
				"internalParameters":   map[string]any{"modified": strings.HasSuffix(r.commit, "-modified"), "signed": false},
				"resolvedDependencies": []resource{source, {Name: "go", URI: "pkg:generic/go@" + strings.TrimPrefix(goversion, "go")}},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": "urn:codemode-bridge:unsigned-local-build"}},
		},
	})
}

// A bundle is the manifest of an MCP bundle, version 0.3: a zip that a desktop client
// installs by a double click.
type bundle struct {
	Manifest      string       `json:"manifest_version"`
	Name          string       `json:"name"`
	DisplayName   string       `json:"display_name"`
	Version       string       `json:"version"`
	Description   string       `json:"description"`
	Long          string       `json:"long_description"`
	Author        named        `json:"author"`
	Repository    *repository  `json:"repository,omitempty"`
	Server        bundleServer `json:"server"`
	Tools         []named      `json:"tools"`
	MoreTools     bool         `json:"tools_generated"`
	License       string       `json:"license"`
	Compatibility struct {
		Platforms []string `json:"platforms"`
	} `json:"compatibility"`
}

type (
	named struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
	}
	repository struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	bundleServer struct {
		Type   string        `json:"type"`
		Entry  string        `json:"entry_point"`
		Config bundleCommand `json:"mcp_config"`
	}
	bundleCommand struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	}
)

// bundled is the MCP bundle for a platform. The bridge that it starts reads the
// configuration of whoever installs it, at its usual place.
func (r *release) bundled(p platform, programs, papers []entry) ([]byte, error) {
	system, _ := p.npm()
	program := "server/" + programs[0].name
	m := bundle{
		Manifest: "0.3", Name: "codemode-bridge", DisplayName: "codemode-bridge", Version: r.version,
		Description: "One MCP server in front of many, with one code tool", Author: named{Name: "codemode-bridge"}, License: license,
		Long:   strings.ReplaceAll(description, "\n", " ") + " The servers and the policy are those of your configuration: `codemode-bridge init`, in a terminal, writes one.",
		Server: bundleServer{Type: "binary", Entry: program, Config: bundleCommand{Command: "${__dirname}/" + program, Args: []string{"run"}, Env: map[string]string{}}},
		Tools:  []named{{"eval", "Runs a script that calls the tools of all servers"}}, MoreTools: true,
	}
	m.Compatibility.Platforms = []string{system}
	if r.repository != "" {
		m.Repository = &repository{"git", r.repository}
	}
	about, err := indented(m)
	if err != nil {
		return nil, err
	}
	return zipped(slices.Concat(beneath("server/", programs), papers, []entry{{"manifest.json", 0o644, about}}), r.time)
}

// hosted matches the repositories whose files of a release the MCP registry takes, and
// whose owner's name it knows.
var hosted = regexp.MustCompile(`^https://(github|gitlab)\.com/([A-Za-z0-9-]+)/([A-Za-z0-9._-]+?)(\.git)?$`)

// registryName is the name of this server in the MCP registry: it begins with who owns
// the repository. It is empty if no repository was named.
func registryName(repository string) string {
	m := hosted.FindStringSubmatch(repository)
	if m == nil {
		return ""
	}
	return "io." + m[1] + "." + m[2] + "/codemode-bridge"
}

// download is the address at which the repository has a file of this release.
func (r *release) download(file string) string {
	m := hosted.FindStringSubmatch(r.repository)
	base := "https://" + m[1] + ".com/" + m[2] + "/" + m[3]
	if m[1] == "gitlab" {
		return base + "/-/releases/v" + r.version + "/downloads/" + file
	}
	return base + "/releases/download/v" + r.version + "/" + file
}

// serverEntry is server.json, the entry for the MCP registry: the npm package and the
// bundles, these with their checksums.
func (r *release) serverEntry(files map[string][]byte) ([]byte, error) {
	m := hosted.FindStringSubmatch(r.repository)
	stdio := map[string]string{"type": "stdio"}
	packages := []map[string]any{{
		"registryType": "npm", "identifier": "codemode-bridge", "version": r.version, "transport": stdio,
		"packageArguments": []map[string]string{{"type": "positional", "value": "run"}},
	}}
	for _, name := range sorted(files) {
		if strings.HasSuffix(name, ".mcpb") {
			packages = append(packages, map[string]any{"registryType": "mcpb", "identifier": r.download(name), "fileSha256": digest(files[name]), "transport": stdio})
		}
	}
	return indented(map[string]any{
		"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":    registryName(r.repository), "title": "codemode-bridge", "description": "One MCP server in front of many: one code tool, and a policy that allows, denies or asks",
		"version": r.version, "repository": map[string]string{"url": r.repository, "source": m[1]}, "packages": packages,
	})
}
