package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// ErrNotRead means that the person left before the last page.
var ErrNotRead = errors.New("you left before the end: nothing was changed")

// Pages writes lines, on a terminal page by page: it waits for Return after each but the
// last. The error is ErrNotRead if the person leaves before that.
func (con *Console) Pages(out io.Writer, all []string) error {
	height, width := con.screen(out)
	room := height - 1 // for the question
	for i, line := range all {
		rows := 1
		if width > 0 {
			rows = max(1, (len([]rune(line))+width-1)/width)
		}
		if height > 0 && room < rows && i > 0 {
			more, err := con.more(len(all) - i)
			if err != nil {
				return err
			}
			if !more {
				return ErrNotRead
			}
			room = height - 1
		}
		room -= rows
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

// screen returns the size of the terminal on which somebody reads page by page; zero if
// there is none.
func (con *Console) screen(out io.Writer) (height, width int) {
	file, ok := out.(*os.File)
	if !ok || !con.HasPerson() {
		return 0, 0
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || height < 4 {
		return 0, 0
	}
	return height, width
}

// more asks for the next page.
func (con *Console) more(left int) (bool, error) {
	fmt.Fprintf(con.Err, "-- Return shows more (%s), q leaves: ", Count(left, "line"))
	var answer string
	if _, err := fmt.Fscanln(con.In, &answer); err != nil && err.Error() != "unexpected newline" {
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	return !strings.HasPrefix(strings.ToLower(answer), "q"), nil
}
