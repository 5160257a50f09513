package doctor

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"codemode-bridge/bridge/lines"
)

// A Paper is the doctor's answer for a person, written as it is found.
type Paper struct {
	Out    io.Writer
	Width  int // of its lines; 0 if they may have any
	Colour bool
}

func (p Paper) mark(l Level) string {
	sign, colour := "✓", "32"
	switch l {
	case Warn:
		sign, colour = "!", "33"
	case Fail:
		sign, colour = "✗", "31"
	}
	if p.Colour {
		sign = "\x1b[" + colour + "m" + sign + "\x1b[0m"
	}
	return "[" + sign + "]"
}

// Area prints the findings of one area. Those that say the same of several
// things share a line.
func (p Paper) Area(name string, found []Finding) {
	if len(found) == 0 {
		return
	}
	worst := OK
	for _, f := range found {
		if f.Level.Worse(worst) {
			worst = f.Level
		}
	}
	fmt.Fprintf(p.Out, "\n%s %s\n", p.mark(worst), name)
	for _, f := range Fold(found) {
		line := f.Text
		if f.About != "" {
			line = f.About + ": " + f.Text
		}
		if f.Line > 0 {
			line = f.File + ":" + strconv.Itoa(f.Line) + ":" + strconv.Itoa(f.Column) + ": " + f.Text
		}
		sign := " "
		if f.Level != OK {
			sign = p.mark(f.Level)
			sign = sign[1 : len(sign)-1]
		}
		p.print("  "+sign+" ", "    ", line)
		for _, said := range f.Said {
			p.print("      | ", "      | ", said)
		}
		if f.Do != "" {
			p.print("      do: ", "          ", f.Do)
		}
	}
}

// print writes a line behind first. What does not fit the width follows on lines
// of its own behind next, which is as wide.
func (p Paper) print(first, next, line string) {
	parts := []string{line}
	if p.Width > 0 {
		parts = lines.Hang(line, p.Width-len(next), "")
	}
	for i, part := range parts {
		from := first
		if i > 0 {
			from = next
		}
		fmt.Fprintln(p.Out, from+strings.TrimRight(part, " "))
	}
}

// Foot prints how many warnings and failures there were.
func (p Paper) Foot(warnings, failures int) {
	switch {
	case failures > 0 && warnings > 0:
		fmt.Fprintf(p.Out, "\n%s, %s\n", count(failures, "failure"), count(warnings, "warning"))
	case failures > 0:
		fmt.Fprintf(p.Out, "\n%s\n", count(failures, "failure"))
	case warnings > 0:
		fmt.Fprintf(p.Out, "\nall works, with %s\n", count(warnings, "warning"))
	default:
		fmt.Fprintln(p.Out, "\nall is well")
	}
}
