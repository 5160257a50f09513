package intl

import (
	"unicode"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/clipperhouse/uax29/v2/sentences"
	"github.com/clipperhouse/uax29/v2/words"
)

// A Segment is a piece of a text.
type Segment struct {
	Text string
	Word bool // it has a letter or digit; only set for words
}

// Segments cuts a text into graphemes, words or sentences, by the rules of
// Unicode, which are the same in all the locales that are known here.
func Segments(text, granularity string) (list []Segment) {
	switch granularity {
	case "word":
		for it := words.FromString(text); it.Next(); {
			s := Segment{Text: it.Value()}
			for _, c := range s.Text {
				s.Word = s.Word || unicode.IsLetter(c) || unicode.IsNumber(c)
			}
			list = append(list, s)
		}
	case "sentence":
		for it := sentences.FromString(text); it.Next(); {
			list = append(list, Segment{Text: it.Value()})
		}
	default:
		for it := graphemes.FromString(text); it.Next(); {
			list = append(list, Segment{Text: it.Value()})
		}
	}
	return list
}

// Granularity reads the option of Intl.Segmenter.
func Granularity(get Options) (string, error) {
	r := &reader{get: get, where: "Intl.Segmenter"}
	g := r.choice("granularity", "grapheme", "grapheme", "word", "sentence")
	return g, r.err
}
