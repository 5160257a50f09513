package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// manualPage is codemode-bridge(1), made of the tables of docs/reference/cli.md:
// commands, exit codes and variables.
func (r *release) manualPage() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "docs", "reference", "cli.md"))
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	fmt.Fprintf(&out, ".TH CODEMODE-BRIDGE 1 %q %q\n", r.time.Format("2006-01-02"), "codemode-bridge "+r.version)
	out.WriteString(".SH NAME\ncodemode-bridge \\- one MCP server in front of many, with one code tool\n")
	out.WriteString(".SH SYNOPSIS\n.B codemode-bridge\n[\\-\\-config FILE] [\\-\\-env NAME] COMMAND\n")
	fmt.Fprintf(&out, ".SH DESCRIPTION\n%s\n.PP\ncodemode-bridge help COMMAND says more of a command, and lists its flags.\n", roff(description))
	commands := rows(string(text), "| command |")
	if len(commands) < 50 {
		return nil, fmt.Errorf("docs/reference/cli.md: %d commands were found in its table", len(commands))
	}
	for _, section := range []struct {
		name string
		rows [][2]string
	}{
		{"COMMANDS", commands}, {"EXIT STATUS", rows(string(text), "| code |")}, {"ENVIRONMENT", rows(string(text), "| variable |")},
	} {
		if len(section.rows) == 0 {
			return nil, fmt.Errorf("docs/reference/cli.md: the table for %s was not found", section.name)
		}
		fmt.Fprintf(&out, ".SH %s\n", section.name)
		for _, row := range section.rows {
			fmt.Fprintf(&out, ".TP\n.B %s\n%s\n", roff(row[0]), roff(row[1]))
		}
	}
	out.WriteString(".SH SEE ALSO\nThe documents in /usr/share/doc/codemode-bridge, docs/reference/cli.md first.\n")
	return []byte(out.String()), nil
}

// rows are the rows of the table of a Markdown text whose first line begins with head.
func rows(text, head string) (all [][2]string) {
	_, table, _ := strings.Cut(text, "\n"+head)
	lines := strings.Split(table, "\n")
	for _, line := range lines[min(2, len(lines)):] {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		cells := cellBorder.Split(strings.Trim(line, "| "), 2)
		if len(cells) == 2 {
			all = append(all, [2]string{cells[0], cells[1]})
		}
	}
	return all
}

var (
	cellBorder = regexp.MustCompile(`\s+\|\s+`)
	mdLink     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// roff is Markdown without its marks, as troff takes text.
func roff(text string) string {
	text = mdLink.ReplaceAllString(text, "$1")
	text = strings.NewReplacer(`\|`, "|", "`", "", "**", "", `\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
