package lines

import (
	"strings"
	"testing"
)

// A table on a terminal stays within its width, leaves nothing out, and keeps each cell in
// its column.
func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"name", "state", "tools", "protocol", "why"},
		{"context7", "connected", "2", "2025-11-25"},
		{"oldtool", "failed", "0", "", "starting the process: there is no program /usr/local/bin/old-mcp-tool\nfrom Codex"},
	}
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"not a terminal", 0, `
NAME      STATE      TOOLS  PROTOCOL    WHY
context7  connected  2      2025-11-25
oldtool   failed     0                  starting the process: there is no program /usr/local/bin/old-mcp-tool
                                        from Codex
`},
		{"a wide one", 80, `
NAME      STATE      TOOLS  PROTOCOL    WHY
context7  connected  2      2025-11-25
oldtool   failed     0                  starting the process: there is no
                                          program /usr/local/bin/old-mcp-tool
                                        from Codex
`},
		{"too narrow for the last column", 60, `
NAME      STATE      TOOLS  PROTOCOL
    WHY
context7  connected  2      2025-11-25
oldtool   failed     0
    starting the process: there is no program
      /usr/local/bin/old-mcp-tool
    from Codex
`},
	} {
		if got := "\n" + Table(rows, c.width); got != c.want {
			t.Errorf("%s:%swant%s", c.name, got, c.want)
		}
	}
	wide := [][]string{{"name", "summary"}, {"a", "名前は長い名前です 名前は長い名前です 名前は長い名前です"}}
	for line := range strings.Lines(Table(wide, 40)) {
		if Head(line, 40) < len(strings.TrimSuffix(line, "\n")) {
			t.Errorf("wider than the terminal: %q", line)
		}
	}
}
