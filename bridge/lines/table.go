package lines

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// LastColumn is the least width that the last column of a table needs.
const LastColumn = 28

// Table lays rows out in columns, the first row in capitals. A cell of the last column
// may have several lines. With a width, these are broken to fit, and stand below their
// rows if the other columns leave less than LastColumn.
func Table(rows [][]string, width int) string {
	widths := columnWidths(rows)
	last := len(widths) - 1
	at := 0 // where the last column begins
	for _, w := range widths[:last] {
		at += w + 2
	}
	below := width > 0 && width-at < LastColumn && widths[last] > width-at
	if below {
		at = 4
	}
	var text strings.Builder
	for i, row := range rows {
		line := ""
		for j, cell := range row[:min(len(row), last)] {
			line += Pad(headed(cell, i), widths[j]+2)
		}
		var cells []string
		if len(row) > last && row[last] != "" {
			for cell := range strings.SplitSeq(headed(row[last], i), "\n") {
				if width > 0 {
					cells = append(cells, Hang(cell, width-at, "  ")...)
				} else {
					cells = append(cells, cell)
				}
			}
		}
		if len(cells) > 0 && !below {
			line, cells = Pad(line, at)+cells[0], cells[1:]
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, cell := range cells {
			text.WriteString(strings.Repeat(" ", at) + strings.TrimRight(cell, " ") + "\n")
		}
	}
	return text.String()
}

// Room returns how much of a width columns leave.
func Room(rows [][]string, width int) int {
	for _, w := range columnWidths(rows) {
		width -= w + 2
	}
	return width
}

// headed returns a cell as it is shown: that of the first row in capitals.
func headed(cell string, row int) string {
	if row == 0 {
		return strings.ToUpper(cell)
	}
	return cell
}

// columnWidths returns the widths of the columns of a table.
func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			for line := range strings.SplitSeq(cell, "\n") {
				widths[j] = max(widths[j], lipgloss.Width(line))
			}
		}
	}
	return widths
}
