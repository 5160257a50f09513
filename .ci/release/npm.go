package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// launcher is the program of the npm package that people name.
//
//go:embed launcher.js
var launcher []byte

// readmeText is the README of an archive and of each npm package.
//
//go:embed README.md
var readmeText string

// scope is the one that the packages with the programs are in, so that nobody else can
// publish one that the launcher would take.
const scope = "@codemode-bridge/"

// A manifest is a package.json; its keys are in the order that npm's own have.
type manifest struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	Repository  *repository       `json:"repository,omitempty"`
	MCPName     string            `json:"mcpName,omitempty"` // by which the MCP registry knows that the package is this server
	License     string            `json:"license"`
	Type        string            `json:"type,omitempty"`
	Bin         map[string]string `json:"bin,omitempty"`
	Engines     map[string]string `json:"engines,omitempty"`
	OS          []string          `json:"os,omitempty"`
	CPU         []string          `json:"cpu,omitempty"`
	// Unplugged has Yarn keep the package as a folder: a program is not started from
	// within a zip.
	Unplugged bool              `json:"preferUnplugged,omitempty"`
	Optional  map[string]string `json:"optionalDependencies,omitempty"`
}

const license = "Apache-2.0"

// readme is the README for this version.
func (r *release) readme() []byte {
	return []byte(strings.ReplaceAll(readmeText, "VERSION", r.version))
}

// packed is an npm package under the name that npm pack gives its file.
func (r *release) packed(m manifest, entries []entry) (file string, text []byte, err error) {
	about, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return "", nil, err
	}
	entries = append(slices.Clone(entries), entry{"package.json", 0o644, append(about, '\n')})
	text, err = tarred(beneath("package/", entries), r.time)
	name := strings.ReplaceAll(strings.TrimPrefix(m.Name, "@"), "/", "-")
	return fmt.Sprintf("%s-%s.tgz", name, m.Version), text, err
}

// platformPackage has the programs for one platform. npm leaves out those of the others.
func (r *release) platformPackage(p platform, programs, papers []entry) (file string, text []byte, err error) {
	os, cpu := p.npm()
	m := manifest{
		Name: scope + os + "-" + cpu, Version: r.version, License: license,
		Description: fmt.Sprintf("The programs of codemode-bridge for %s on %s. Install codemode-bridge instead.", os, cpu),
		OS:          []string{os}, CPU: []string{cpu}, Unplugged: true,
	}
	return r.packed(m, slices.Concat(beneath("bin/", programs), papers))
}

// mainPackage has the launcher. It is the same whichever platforms were built.
func (r *release) mainPackage(paper []byte) (file string, text []byte, err error) {
	m := manifest{
		Name: "codemode-bridge", Version: r.version, License: license,
		Description: "One MCP server in front of many, with one code tool",
		Type:        "commonjs",
		Bin:         map[string]string{"codemode-bridge": "bin/codemode-bridge.js"},
		Engines:     map[string]string{"node": ">=18"},
		Optional:    map[string]string{},
		MCPName:     registryName(r.repository),
	}
	if r.repository != "" {
		m.Repository = &repository{"git", "git+" + r.repository + ".git"}
	}
	for _, p := range platforms {
		os, cpu := p.npm()
		m.Optional[scope+os+"-"+cpu] = r.version
	}
	return r.packed(m, []entry{{"bin/codemode-bridge.js", 0o755, launcher}, {"LICENSE", 0o644, paper}, {"README.md", 0o644, r.readme()}})
}
