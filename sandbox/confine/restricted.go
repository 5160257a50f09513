package confine

import "strings"

// low reports whether a program can run with low integrity on Windows, which keeps it from
// writing whatever is the person's: the folders that a box lets it write are, too.
func (b Box) low() bool { return len(b.Write) == 0 }

// restricted says of the steps on Windows why they do not hold. Nobody has tried yet
// what is there, so nothing counts on it.
func (b Box) restricted() Steps {
	steps := make(Steps)
	for _, step := range []Step{Files, Processes, Network, Landlock, Powers, Calls, Limits} {
		steps[step] = "not available on Windows"
	}
	steps[Powers] = "untried: a restricted token"
	steps[Limits] = "untried: a job object"
	if b.low() {
		steps[Files] = "untried: low integrity, which keeps it from writing, not from reading"
	}
	return steps
}

// withTemp is an environment of Windows with a place for temporary files.
func withTemp(env []string, temp string) []string {
	var kept []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.EqualFold(name, "TEMP") && !strings.EqualFold(name, "TMP") {
			kept = append(kept, entry)
		}
	}
	return append(kept, "TEMP="+temp, "TMP="+temp)
}
