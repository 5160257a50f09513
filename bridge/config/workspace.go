package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"codemode-bridge/profiles"
)

// An Evaluation is the policy as it was written, and the folders that it is about.
type Evaluation struct {
	profiles.Spec
	// Workspace are the folders that scripts work on, absolute; nil if the file
	// does not say. Links in them are not followed here.
	Workspace Folders `json:"workspace,omitempty"`
}

// Folders are written as a list, or as a string if there is one.
type Folders []string

// UnmarshalJSON reads a string or a list of strings.
func (f *Folders) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*f = Folders{one}
		return nil
	}
	var all []string
	if json.Unmarshal(text, &all) != nil {
		return wrong(`write "~/work", or ["~/work", "~/notes"]`, "must be a folder or a list of folders")
	}
	*f = all
	return nil
}

// workspace makes the folders of the workspace absolute.
func (c *checker) workspace() {
	const at = "/evaluation/workspace"
	if !c.sound(at) {
		return
	}
	folders := c.config.Evaluation.Workspace
	if len(folders) == 0 {
		c.at(at, `"workspace" names no folder`, "leave it out to have the folders that the client works in")
	}
	for i, folder := range folders {
		path := fmt.Sprintf("%s/%d", at, i)
		switch {
		case strings.TrimSpace(folder) == "":
			c.at(path, `"workspace" has an empty name`, `write "." for the folder of this file`)
		case strings.Contains(folder, "${"):
			c.at(path, "variables are not filled in here", `write the path; "~" is the home folder`)
		default:
			folders[i] = c.fromFolder(folder, path)
		}
	}
}
