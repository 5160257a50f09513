package intl

import (
	"unicode"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// A Collator compares texts as people sort them.
type Collator struct {
	locale                 string
	sensitivity, caseFirst string
	numeric, ignore        bool
	usage                  string
	order                  *collate.Collator // decides
	loose                  *collate.Collator // for caseFirst: the order without case
}

// NewCollator makes the comparer of Intl.Collator and localeCompare.
func NewCollator(tag, where string, get Options) (*Collator, error) {
	l, err := Known(tag)
	if err != nil {
		return nil, err
	}
	r := &reader{get: get, where: where}
	c := &Collator{locale: l}
	c.usage = r.choice("usage", "sort", "sort", "search")
	c.sensitivity = r.choice("sensitivity", "variant", "base", "accent", "case", "variant")
	c.caseFirst = r.choice("caseFirst", "false", "upper", "lower", "false")
	on := func(name string) bool { v, set := get(name); return set && v != "false" && v != "" }
	c.numeric, c.ignore = on("numeric"), on("ignorePunctuation")
	if r.err != nil {
		return nil, r.err
	}
	base := "en"
	if c.ignore {
		base += "-u-ka-shifted"
	}
	t := language.Make(base)
	var options []collate.Option
	if c.numeric {
		options = append(options, collate.Numeric)
	}
	switch c.sensitivity {
	case "base":
		options = append(options, collate.Loose)
	case "accent":
		options = append(options, collate.IgnoreCase, collate.IgnoreWidth)
	case "case":
		options = append(options, collate.IgnoreDiacritics)
	}
	c.order = collate.New(t, append(options, collate.OptionsFromTag(t))...)
	if c.caseFirst == "upper" && c.sensitivity != "base" && c.sensitivity != "accent" {
		c.loose = collate.New(t, append(options, collate.IgnoreCase, collate.OptionsFromTag(t))...)
	}
	return c, nil
}

// Compare returns -1, 0 or 1.
func (c *Collator) Compare(a, b string) int {
	if a == b {
		return 0
	}
	if c.loose != nil {
		if n := c.loose.CompareString(a, b); n != 0 {
			return n
		}
		x, y := []rune(a), []rune(b)
		for i := 0; i < len(x) && i < len(y); i++ {
			if up, other := unicode.IsUpper(x[i]), unicode.IsUpper(y[i]); up != other {
				if up {
					return -1
				}
				return 1
			}
		}
	}
	return c.order.CompareString(a, b)
}

// Resolved returns the properties of resolvedOptions, in order.
func (c *Collator) Resolved() []Field {
	return []Field{{"locale", c.locale}, {"usage", c.usage}, {"sensitivity", c.sensitivity}, {"ignorePunctuation", c.ignore},
		{"collation", "default"}, {"numeric", c.numeric}, {"caseFirst", c.caseFirst}}
}
