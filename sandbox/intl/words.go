package intl

import "slices"

// A Plural tells which form of a word goes with a number.
type Plural struct {
	number  *Number
	ordinal bool
}

// NewPlural makes the rules of Intl.PluralRules.
func NewPlural(tag string, get Options) (*Plural, error) {
	r := &reader{get: get, where: "Intl.PluralRules"}
	kind := r.choice("type", "cardinal", "cardinal", "ordinal")
	if r.err != nil {
		return nil, r.err
	}
	n, err := NewNumber(tag, "Intl.PluralRules", func(name string) (string, bool) {
		switch name {
		case "minimumIntegerDigits", "minimumFractionDigits", "maximumFractionDigits", "minimumSignificantDigits", "maximumSignificantDigits",
			"roundingMode", "roundingIncrement", "roundingPriority", "trailingZeroDisplay":
			return get(name)
		}
		return "", false
	})
	return &Plural{n, kind == "ordinal"}, err
}

// Select returns the form: one, two, few or other.
func (p *Plural) Select(x Decimal) string {
	if x.nan || x.inf {
		return "other"
	}
	body, least := p.number.rounded(x)
	whole, fraction := body.places()
	if !p.ordinal {
		if whole == "1" && fraction == "" && least == 0 {
			return "one"
		}
		return "other"
	}
	if fraction != "" {
		return "other"
	}
	last := whole[len(whole)-1]
	if len(whole) > 1 && whole[len(whole)-2] == '1' {
		return "other"
	}
	switch last {
	case '1':
		return "one"
	case '2':
		return "two"
	case '3':
		return "few"
	}
	return "other"
}

// Resolved returns the properties of resolvedOptions, in order; a []string is
// an array.
func (p *Plural) Resolved() []Field {
	kind, forms := "cardinal", []string{"one", "other"}
	if p.ordinal {
		kind, forms = "ordinal", []string{"few", "one", "two", "other"}
	}
	f := []Field{{"locale", p.number.locale}, {"type", kind}}
	for _, x := range p.number.Resolved() {
		switch x.Name {
		case "minimumIntegerDigits", "minimumFractionDigits", "maximumFractionDigits", "minimumSignificantDigits", "maximumSignificantDigits":
			f = append(f, x)
		case "roundingIncrement":
			f = append(f, Field{"pluralCategories", forms}, x)
		case "roundingMode", "roundingPriority", "trailingZeroDisplay":
			f = append(f, x)
		}
	}
	return f
}

// A List joins texts.
type List struct {
	locale                string
	kind, style           string
	pair, middle, between string
}

// NewList makes the formatter of Intl.ListFormat.
func NewList(tag string, get Options) (*List, error) {
	l, err := Known(tag)
	if err != nil {
		return nil, err
	}
	r := &reader{get: get, where: "Intl.ListFormat"}
	list := &List{locale: l}
	list.kind = r.choice("type", "conjunction", "conjunction", "disjunction", "unit")
	list.style = r.choice("style", "long", "long", "short", "narrow")
	if r.err != nil {
		return nil, r.err
	}
	v := lookup("list", list.kind, list.style)
	list.pair, list.middle, list.between = v[0], v[1], v[2]
	return list, nil
}

// Parts joins texts, in parts.
func (l *List) Parts(items []string) (parts []Part) {
	for i, item := range items {
		if i > 0 {
			glue := l.middle
			switch {
			case len(items) == 2:
				glue = l.pair
			case i == len(items)-1:
				glue = l.between
			}
			parts = append(parts, Part{"literal", glue})
		}
		parts = append(parts, Part{"element", item})
	}
	return parts
}

// Resolved returns the properties of resolvedOptions, in order.
func (l *List) Resolved() []Field {
	return []Field{{"locale", l.locale}, {"type", l.kind}, {"style", l.style}}
}

// A Relative says how long ago something was, or how soon it will be.
type Relative struct {
	number *Number
	style  string
	auto   bool
}

// NewRelative makes the formatter of Intl.RelativeTimeFormat.
func NewRelative(tag string, get Options) (*Relative, error) {
	r := &reader{get: get, where: "Intl.RelativeTimeFormat"}
	out := &Relative{style: r.choice("style", "long", "long", "short", "narrow"), auto: r.choice("numeric", "always", "always", "auto") == "auto"}
	if r.err != nil {
		return nil, r.err
	}
	n, err := NewNumber(tag, "Intl.RelativeTimeFormat", func(string) (string, bool) { return "", false })
	out.number = n
	return out, err
}

var relativeUnits = []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}

// Parts writes a distance in a unit such as day or days. The unit of each
// part but the literals is the second result.
func (r *Relative) Parts(x Decimal, unit string) ([]Part, string, error) {
	if n := len(unit); n > 0 && unit[n-1] == 's' {
		unit = unit[:n-1]
	}
	if !slices.Contains(relativeUnits, unit) {
		return nil, "", rangeError("Invalid unit argument for Intl.RelativeTimeFormat.prototype.format() '" + unit + "'")
	}
	if x.nan || x.inf {
		return nil, "", rangeError("The number argument to Intl.RelativeTimeFormat.prototype.format() must be finite")
	}
	if r.auto && (x.zero() || x.digits == "1" && x.exp == 1) {
		i := 1
		if !x.zero() {
			i = 2
			if x.neg {
				i = 0
			}
		}
		return []Part{{"literal", lookup("named", r.style, unit)[i]}}, unit, nil
	}
	i := 2
	if x.neg {
		i = 0
	}
	x.neg = false
	body, least := r.number.rounded(x)
	parts, plural := r.number.number(body, least)
	if plural != "one" {
		i++
	}
	pattern := lookup("relative", r.style, unit)[i]
	return around(pattern, parts), unit, nil
}

// around puts parts in the place of 0 in a pattern whose rest is literal.
func around(pattern string, parts []Part) (out []Part) {
	for i := range len(pattern) {
		if pattern[i] == '0' {
			if i > 0 {
				out = append(out, Part{"literal", pattern[:i]})
			}
			return append(append(out, parts...), Part{"literal", pattern[i+1:]})
		}
	}
	return parts
}

// Resolved returns the properties of resolvedOptions, in order.
func (r *Relative) Resolved() []Field {
	numeric := "always"
	if r.auto {
		numeric = "auto"
	}
	return []Field{{"locale", r.number.locale}, {"style", r.style}, {"numeric", numeric}, {"numberingSystem", "latn"}}
}
