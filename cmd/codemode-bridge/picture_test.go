package main_test

// Turns what a program wrote to a terminal into a picture: a grid of characters with their
// colours, drawn as SVG.

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// A cell is one character of a grid with its look.
type cell struct {
	text rune
	look look
}

// A look is how a character is drawn. Colours are numbers of the 256; 0 is the
// terminal's own, n+1 is colour n.
type look struct {
	ink, ground            int
	bold, faint, underline bool
	reversed               bool
}

// A grid is a terminal's screen. It knows the control sequences that the renderer of
// approvals watch uses, and keeps those that it does not know, for a test to refuse.
type grid struct {
	cells   [][]cell
	x, y    int
	look    look
	last    rune
	unknown []string
}

func newGrid(wide, high int) *grid {
	g := &grid{cells: make([][]cell, high)}
	for y := range g.cells {
		g.cells[y] = make([]cell, wide)
	}
	g.erase(0, wide*high)
	return g
}

// erase empties cells, counted from the upper left corner.
func (g *grid) erase(from, to int) {
	wide := len(g.cells[0])
	for i := max(from, 0); i < min(to, wide*len(g.cells)); i++ {
		g.cells[i/wide][i%wide] = cell{text: ' ', look: look{ground: g.look.ground}}
	}
}

var control = regexp.MustCompile(`^\x1b(?:\[([?>=<]?)([0-9;:]*)[ $]?([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[78M=>c])`)

func (g *grid) write(text string) {
	for len(text) > 0 {
		if text[0] == 0x1b {
			m := control.FindStringSubmatch(text)
			if m == nil {
				g.unknown = append(g.unknown, text[:min(len(text), 8)])
				text = text[1:]
				continue
			}
			if m[3] != "" && m[1] == "" {
				g.obey(m[3][0], m[2])
			}
			text = text[len(m[0]):]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		switch r {
		case '\r':
			g.x = 0
		case '\n':
			g.down()
		case '\b':
			g.x = max(g.x-1, 0)
		case '\t':
			g.x = min((g.x/8+1)*8, len(g.cells[0])-1)
		case '\a':
		default:
			g.put(r)
		}
	}
}

func (g *grid) put(r rune) {
	if g.x == len(g.cells[0]) {
		g.x = 0
		g.down()
	}
	g.cells[g.y][g.x] = cell{r, g.look}
	g.x, g.last = g.x+1, r
}

func (g *grid) down() {
	if g.y < len(g.cells)-1 {
		g.y++
		return
	}
	g.scroll(0, 1)
}

// scroll moves the lines from y on up by n.
func (g *grid) scroll(y, n int) {
	for range n {
		g.cells = append(slices.Delete(g.cells, y, y+1), make([]cell, len(g.cells[0])))
		g.erase((len(g.cells)-1)*len(g.cells[0]), len(g.cells)*len(g.cells[0]))
	}
}

// obey does what a control sequence says.
func (g *grid) obey(final byte, params string) {
	wide, high := len(g.cells[0]), len(g.cells)
	var numbers []int
	for _, p := range strings.FieldsFunc(params, func(r rune) bool { return r == ';' }) {
		n, err := strconv.Atoi(p)
		if err != nil {
			g.unknown = append(g.unknown, params+string(final))
			return
		}
		numbers = append(numbers, n)
	}
	n, first := 1, 0 // the first number, as a count and as a kind
	if len(numbers) > 0 {
		first, n = numbers[0], max(numbers[0], 1)
	}
	here := g.y*wide + min(g.x, wide-1)
	switch final {
	case 'A':
		g.y = max(g.y-n, 0)
	case 'B':
		g.y = min(g.y+n, high-1)
	case 'C':
		g.x = min(g.x+n, wide-1)
	case 'D':
		g.x = max(g.x-n, 0)
	case 'G', '`':
		g.x = min(n, wide) - 1
	case 'd':
		g.y = min(n, high) - 1
	case 'H', 'f':
		g.y, g.x = min(n, high)-1, 0
		if len(numbers) > 1 {
			g.x = min(max(numbers[1], 1), wide) - 1
		}
	case 'J':
		g.erase([]int{here, 0, 0}[min(first, 2)], []int{wide * high, here + 1, wide * high}[min(first, 2)])
	case 'K':
		line := g.y * wide
		g.erase([]int{here, line, line}[min(first, 2)], []int{line + wide, here + 1, line + wide}[min(first, 2)])
	case 'X':
		g.erase(here, min(here+n, (g.y+1)*wide))
	case 'b':
		for range n {
			g.put(g.last)
		}
	case 'M':
		g.scroll(g.y, n)
	case 'S':
		g.scroll(0, n)
	case 'm':
		g.dress(numbers)
	case 'c', 'h', 'l', 'n', 'p', 'q', 'r', 't', 'u':
		// queries and modes that do not change the picture
	default:
		g.unknown = append(g.unknown, params+string(final))
	}
}

// dress changes the look of the characters that follow.
func (g *grid) dress(numbers []int) {
	if len(numbers) == 0 {
		numbers = []int{0}
	}
	for i := 0; i < len(numbers); i++ {
		switch n := numbers[i]; {
		case n == 0:
			g.look = look{}
		case n == 1:
			g.look.bold = true
		case n == 2:
			g.look.faint = true
		case n == 4:
			g.look.underline = true
		case n == 7:
			g.look.reversed = true
		case n == 22:
			g.look.bold, g.look.faint = false, false
		case n == 24:
			g.look.underline = false
		case n == 27:
			g.look.reversed = false
		case n >= 30 && n <= 37:
			g.look.ink = n - 30 + 1
		case n == 39:
			g.look.ink = 0
		case n >= 40 && n <= 47:
			g.look.ground = n - 40 + 1
		case n == 49:
			g.look.ground = 0
		case n >= 90 && n <= 97:
			g.look.ink = n - 90 + 8 + 1
		case (n == 38 || n == 48) && i+2 < len(numbers) && numbers[i+1] == 5:
			if n == 38 {
				g.look.ink = numbers[i+2] + 1
			} else {
				g.look.ground = numbers[i+2] + 1
			}
			i += 2
		default:
			g.unknown = append(g.unknown, fmt.Sprint(numbers))
			return
		}
	}
}

// text is the text on the screen.
func (g *grid) text() string {
	var b strings.Builder
	for _, row := range g.cells {
		line := make([]rune, 0, len(row))
		for _, c := range row {
			line = append(line, c.text)
		}
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return strings.Trim(b.String(), "\n") + "\n"
}

// hardBlank is a blank that readers of SVG do not collapse with the next.
const hardBlank = "\u00a0"

const ink, ground = "#d4d7dd", "#15181e"

// colour is one of the 256 as a web page writes it.
func colour(n int) string {
	few := []string{"#3b4048", "#f0716b", "#8ec07c", "#e5c07b", "#6cb0f2", "#c792ea", "#56c2c9", "#d4d7dd",
		"#7d8590", "#ff8f88", "#a9dc94", "#f2d597", "#8cc4ff", "#dab4f5", "#7fdde3", "#ffffff"}
	switch n--; {
	case n < 16:
		return few[n]
	case n < 232:
		part := func(k int) int { return []int{0, 95, 135, 175, 215, 255}[k] }
		return fmt.Sprintf("#%02x%02x%02x", part((n-16)/36), part((n-16)/6%6), part((n-16)%6))
	}
	grey := 8 + 10*(n-232)
	return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
}

// svg draws the screen, without the empty lines at its end. Each line of text
// is one element, so that svgText finds it again.
func (g *grid) svg(title string) string {
	const charWide, lineHigh, edge, bar = 8.4, 19.0, 14.0, 30.0
	text := strings.Split(strings.TrimRight(g.text(), "\n"), "\n")
	rows := g.cells
	for len(rows) > len(text) && strings.TrimSpace(line(rows[len(rows)-1])) == "" {
		rows = rows[:len(rows)-1]
	}
	wide, high := charWide*float64(len(rows[0]))+2*edge, lineHigh*float64(len(rows))+2*edge+bar
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">`+"\n", wide, high, wide, high)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", ground)
	for i, light := range []string{"#f0716b", "#e5c07b", "#8ec07c"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="17" r="5.5" fill="%s"/>`+"\n", 20+18*i, light)
	}
	var words strings.Builder
	for y, row := range rows {
		base := edge + bar + lineHigh*float64(y)
		fmt.Fprintf(&words, `<text y="%.1f" fill="%s">`, base+14, ink)
		for x := 0; x < len(row); {
			end := x + 1
			for end < len(row) && row[end].look == row[x].look {
				end++
			}
			l, run := row[x].look, line(row[x:end])
			front, back := ink, ""
			if l.ink > 0 {
				front = colour(l.ink)
			}
			if l.ground > 0 {
				back = colour(l.ground)
			}
			if l.reversed {
				if back == "" {
					back = ground
				}
				front, back = back, front
			}
			if back != "" {
				fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", edge+charWide*float64(x), base, charWide*float64(end-x), lineHigh, back)
			}
			if end == len(row) {
				run = strings.TrimRight(run, " ")
			}
			if run != "" {
				fmt.Fprintf(&words, `<tspan x="%.1f" textLength="%.1f"`, edge+charWide*float64(x), charWide*float64(utf8.RuneCountInString(run)))
				for _, a := range []struct {
					text string
					on   bool
				}{{` fill="` + front + `"`, front != ink}, {` font-weight="bold"`, l.bold}, {` opacity="0.65"`, l.faint}, {` text-decoration="underline"`, l.underline}} {
					if a.on {
						words.WriteString(a.text)
					}
				}
				words.WriteString(">" + strings.ReplaceAll(html.EscapeString(run), " ", hardBlank) + "</tspan>")
			}
			x = end
		}
		words.WriteString("</text>\n")
	}
	return b.String() + words.String() + "</svg>\n"
}

func line(row []cell) string {
	var b strings.Builder
	for _, c := range row {
		b.WriteRune(c.text)
	}
	return b.String()
}

var (
	svgLine = regexp.MustCompile(`(?m)^<text [^>]*>(.*)</text>$`)
	svgMark = regexp.MustCompile(`<[^>]*>`)
)

// svgText is the text of a picture that svg drew.
func svgText(picture string) string {
	var b strings.Builder
	for _, m := range svgLine.FindAllStringSubmatch(picture, -1) {
		text := html.UnescapeString(svgMark.ReplaceAllString(m[1], ""))
		b.WriteString(strings.TrimRight(strings.ReplaceAll(text, hardBlank, " "), " ") + "\n")
	}
	return b.String()
}

func TestGridReadsATerminal(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ wrote, shows string }{
		{"ab\r\ncd", "ab\ncd\n"},
		{"abcdefgh", "abcdef\ngh\n"},
		{"abc\x1b[2D*\x1b[Kd", "a*d\n"},
		{"a\x1b[3b\x1b[1;2H\x1b[X", "a aa\n"},
		{"1\r\n2\r\n3\r\n4", "2\n3\n4\n"},
		{"abc\x1b[2J\x1b[Hx\x1b]2;title\ay", "xy\n"},
		{"a\r\nb\r\nc\x1b[1;1H\x1b[M", "b\nc\n"},
	} {
		g := newGrid(6, 3)
		g.write(row.wrote)
		if g.text() != row.shows || g.unknown != nil {
			t.Errorf("%q shows %q, want %q; unknown: %q", row.wrote, g.text(), row.shows, g.unknown)
		}
	}
	g := newGrid(20, 3)
	g.write("plain  \x1b[1;31mred <&>\x1b[0m\r\n\r\n\x1b[7mturned\x1b[m")
	if want := "plain  red <&>\n\nturned\n"; svgText(g.svg("x")) != want {
		t.Errorf("the picture has %q, want %q", svgText(g.svg("x")), want)
	}
	g.write("\x1b[4z")
	if len(g.unknown) != 1 {
		t.Errorf("unknown: %q", g.unknown)
	}
}
