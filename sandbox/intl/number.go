package intl

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Number formats numbers.
type Number struct {
	locale string

	style, currency, currencyDisplay, currencySign string
	unit, unitDisplay                              string
	notation, compactDisplay, signDisplay          string
	grouping                                       string // auto, min2, always, or empty for none

	minInt                   int
	minFrac, maxFrac         int // maxFrac is -1 if only significant digits count
	minSig, maxSig           int // maxSig is 0 if only fraction digits count
	increment                int
	mode, priority, trailing string
}

// NewNumber makes the formatter of Intl.NumberFormat, or of the method where.
func NewNumber(tag, where string, get Options) (*Number, error) {
	l, err := Known(tag)
	if err != nil {
		return nil, err
	}
	r := &reader{get: get, where: where}
	r.refuse("numberingSystem")
	n := &Number{locale: l}
	n.style = r.choice("style", "decimal", "decimal", "percent", "currency", "unit")
	n.currency, _ = get("currency")
	n.currencyDisplay = r.choice("currencyDisplay", "symbol", "code", "symbol", "narrowSymbol", "name")
	n.currencySign = r.choice("currencySign", "standard", "standard", "accounting")
	n.unit, _ = get("unit")
	n.unitDisplay = r.choice("unitDisplay", "short", "short", "narrow", "long")
	n.notation = r.choice("notation", "standard", "standard", "scientific", "engineering", "compact")
	switch n.style {
	case "currency":
		n.currency = strings.ToUpper(n.currency)
		if n.currency == "" {
			r.fail(&Error{"TypeError", "Currency code is required with currency style."})
		} else if len(n.currency) != 3 || strings.Trim(n.currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			r.fail(rangeError("Invalid currency code : " + n.currency))
		}
	case "unit":
		if n.unit == "" {
			r.fail(&Error{"TypeError", "Unit is required with unit style."})
		} else if err := n.checkUnit(); err != nil {
			r.fail(err)
		}
	}
	n.digits(r)
	n.compactDisplay = r.choice("compactDisplay", "short", "short", "long")
	n.readGrouping(r)
	n.signDisplay = r.choice("signDisplay", "auto", "auto", "never", "always", "exceptZero", "negative")
	return n, r.err
}

func (n *Number) readGrouping(r *reader) {
	n.grouping = "auto"
	if n.notation == "compact" {
		n.grouping = "min2"
	}
	switch v, set := r.get("useGrouping"); {
	case !set:
	case v == "true":
		n.grouping = "always"
	case v == "false" || v == "":
		n.grouping = ""
	case v == "auto" || v == "min2" || v == "always":
		n.grouping = v
	default:
		r.fail(rangeError("Value " + v + " out of range for " + r.where + " options property useGrouping"))
	}
}

// digits is SetNumberFormatDigitOptions of ECMA-402.
func (n *Number) digits(r *reader) {
	least, most := 0, 3
	switch {
	case n.style == "currency" && n.notation != "compact":
		least = n.currencyDigits()
		most = least
	case n.style == "percent", n.notation == "compact":
		most = 0
	}
	n.minInt = r.number("minimumIntegerDigits", 1, 21, 1)
	minFrac := r.number("minimumFractionDigits", 0, 100, -1)
	maxFrac := r.number("maximumFractionDigits", 0, 100, -1)
	minSig := r.number("minimumSignificantDigits", 1, 21, -1)
	maxSig := r.number("maximumSignificantDigits", max(1, minSig), 21, -1)
	n.increment = r.number("roundingIncrement", 1, 5000, 1)
	n.mode = r.choice("roundingMode", "halfExpand", "ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven")
	n.priority = r.choice("roundingPriority", "auto", "auto", "morePrecision", "lessPrecision")
	n.trailing = r.choice("trailingZeroDisplay", "auto", "auto", "stripIfInteger")
	hasSig, hasFrac := minSig >= 0 || maxSig >= 0, minFrac >= 0 || maxFrac >= 0
	needSig, needFrac := true, true
	if n.priority == "auto" {
		needSig = hasSig
		needFrac = !(hasSig || !hasFrac && n.notation == "compact")
	}
	n.maxFrac = -1
	if needSig {
		n.minSig, n.maxSig = max(1, minSig), maxSig
		if maxSig < 0 {
			n.maxSig = 21
		}
	}
	if needFrac {
		switch {
		case minFrac < 0 && maxFrac < 0:
			minFrac, maxFrac = least, most
		case minFrac < 0:
			minFrac = min(least, maxFrac)
		case maxFrac < 0:
			maxFrac = max(most, minFrac)
		case minFrac > maxFrac:
			r.fail(rangeError("maximumFractionDigits value is out of range."))
		}
		n.minFrac, n.maxFrac = minFrac, maxFrac
	}
	if !needSig && !needFrac {
		n.minFrac, n.maxFrac, n.minSig, n.maxSig, n.priority = 0, 0, 1, 2, "morePrecision"
	}
	if n.increment > 1 && (n.maxSig > 0 || n.minFrac != n.maxFrac) {
		r.fail(rangeError("roundingIncrement value is out of range."))
	}
}

// rounded rounds x and says how many fraction digits are shown at least.
func (n *Number) rounded(x Decimal) (out Decimal, least int) {
	sigPlace, fracPlace := x.magnitude()-n.maxSig+1, -n.maxFrac
	sig := n.maxSig > 0 && (n.maxFrac < 0 || (sigPlace < fracPlace) == (n.priority != "lessPrecision"))
	if !sig {
		return x.round(fracPlace, n.increment, n.mode), n.minFrac
	}
	out = x.round(sigPlace, 1, n.mode)
	return out, max(0, n.minSig-1-out.magnitude())
}

// Format writes a number.
func (n *Number) Format(x Decimal) string { return Join(n.Parts(x)) }

// Parts writes a number in parts.
func (n *Number) Parts(x Decimal) []Part {
	if n.style == "percent" {
		x = x.shift(2)
	}
	var power int
	var suffix string // of compact notation, with 0 for the number
	body := x
	least := 0
	switch {
	case x.nan || x.inf:
	case n.notation == "compact":
		body, least, suffix = n.compact(x)
	case n.notation == "scientific" || n.notation == "engineering":
		scale := func(m int) int {
			if n.notation == "engineering" {
				return m - ((m%3)+3)%3
			}
			return m
		}
		power = scale(x.magnitude())
		if body, least = n.rounded(x.shift(-power)); body.magnitude()+power != x.magnitude() && !x.zero() {
			power = scale(body.magnitude() + power)
			body, least = n.rounded(x.shift(-power))
		}
	default:
		body, least = n.rounded(x)
	}
	parts, plural := n.number(body, least)
	if n.notation == "scientific" || n.notation == "engineering" {
		parts = append(parts, Part{"exponentSeparator", "E"})
		if power < 0 {
			parts = append(parts, Part{"exponentMinusSign", "-"})
			power = -power
		}
		parts = append(parts, Part{"exponentInteger", strconv.Itoa(power)})
	}
	if suffix != "" {
		parts = affix(suffix, parts, "compact", "")
	}
	return n.decorate(parts, n.sign(body), plural)
}

// sign returns -, + or nothing.
func (n *Number) sign(x Decimal) string {
	shown := x.zero() || x.nan
	switch n.signDisplay {
	case "never":
		return ""
	case "always":
		if !x.neg {
			return "+"
		}
	case "exceptZero":
		if shown {
			return ""
		}
		if !x.neg {
			return "+"
		}
	case "negative":
		if shown {
			return ""
		}
	}
	if x.neg {
		return "-"
	}
	return ""
}

// number writes digits, without a sign, and says which plural they take.
func (n *Number) number(x Decimal, least int) (parts []Part, plural string) {
	switch {
	case x.nan:
		return []Part{{"nan", "NaN"}}, "other"
	case x.inf:
		return []Part{{"infinity", "∞"}}, "other"
	}
	whole, fraction := x.places()
	for len(fraction) < least {
		fraction += "0"
	}
	if n.trailing == "stripIfInteger" && strings.Trim(fraction, "0") == "" {
		fraction = ""
	}
	for len(whole) < n.minInt {
		whole = "0" + whole
	}
	for i, digits := range n.grouped(whole) {
		if i > 0 {
			parts = append(parts, Part{"group", ","})
		}
		parts = append(parts, Part{"integer", digits})
	}
	if fraction != "" {
		parts = append(parts, Part{"decimal", "."}, Part{"fraction", fraction})
	}
	if whole == "1" && fraction == "" {
		return parts, "one"
	}
	return parts, "other"
}

// groupSize is how many digits are between two commas.
const groupSize = 3

func (n *Number) grouped(whole string) []string {
	need := groupSize + 1
	switch n.grouping {
	case "":
		return []string{whole}
	case "min2":
		need = groupSize + 2
	}
	if len(whole) < need {
		return []string{whole}
	}
	var list []string
	last := len(whole) - groupSize
	for from, to := 0, (last-1)%groupSize+1; to <= last; from, to = to, to+groupSize {
		list = append(list, whole[from:to])
	}
	return append(list, whole[last:])
}

func (n *Number) lookupCompact(display string, e int, plural string) []string {
	return lookup("compact", display, strconv.Itoa(e), plural)
}

// compact divides x by the thousand, million and so on that is near it.
func (n *Number) compact(x Decimal) (body Decimal, least int, pattern string) {
	at := func(magnitude int) (shift int, patterns [2]string) {
		if magnitude < 3 {
			return 0, patterns
		}
		e := min(magnitude, 15)
		other := n.lookupCompact(n.compactDisplay, e, "other")
		one := n.lookupCompact(n.compactDisplay, e, "one")
		digits, _ := strconv.Atoi(other[0])
		return e - digits + 1, [2]string{one[1], other[1]}
	}
	shift, patterns := at(x.magnitude())
	body, least = n.rounded(x.shift(-shift))
	if m := body.magnitude() + shift; m != x.magnitude() {
		shift, patterns = at(m)
		body, least = n.rounded(x.shift(-shift))
	}
	pattern = patterns[1]
	if body.digits == "1" && body.exp == 1 {
		pattern = patterns[0]
	}
	if pattern == "0" {
		pattern = ""
	}
	return body, least, pattern
}

// decorate puts sign, currency, percent sign or unit around a number.
func (n *Number) decorate(parts []Part, sign, plural string) []Part {
	signed := func(pattern string) string { return sign + pattern }
	switch n.style {
	case "percent":
		return affix(signed(text("percent")), parts, "percentSign", "")
	case "unit":
		return affix(signed(n.unitPattern(plural)), parts, "unit", "")
	case "currency":
		money := n.money(plural)
		if n.currencyDisplay == "name" {
			return affix(signed("0 ¤"), parts, "currency", money)
		}
		kind := "standard"
		if r, _ := utf8.DecodeLastRuneInString(money); unicode.IsLetter(r) {
			kind = "letters"
		}
		pattern := text("currency", kind)
		switch {
		case sign == "-" && n.currencySign == "accounting":
			negative := text("currency", "accounting")
			if kind == "letters" {
				negative = strings.Replace(negative, "¤0", pattern, 1)
			}
			pattern = negative
		case sign != "":
			pattern = sign + pattern
		}
		return affix(pattern, parts, "currency", money)
	}
	return affix(signed("0"), parts, "literal", "")
}

// affix replaces 0 in a pattern by parts. The rest of a pattern is a sign, blanks,
// and kind; the currency sign becomes money.
func affix(pattern string, parts []Part, kind, money string) (out []Part) {
	before, after, found := strings.Cut(pattern, "0")
	if !found {
		return parts
	}
	write := func(s string) {
		for s != "" {
			c, size := utf8.DecodeRuneInString(s)
			switch {
			case c == '-':
				out = append(out, Part{"minusSign", "-"})
			case c == '+':
				out = append(out, Part{"plusSign", "+"})
			case c == '¤':
				out = append(out, Part{"currency", money})
			case unicode.IsSpace(c) || c == '(' || c == ')':
				out = append(out, Part{"literal", string(c)})
			default:
				size = len(s)
				if kind != "unit" {
					if end := strings.IndexAny(s, ") \u00a0\u202f"); end > 0 {
						size = end
					}
				}
				out = append(out, Part{kind, s[:size]})
			}
			s = s[size:]
		}
	}
	write(before)
	out = append(out, parts...)
	write(after)
	return out
}

// moneyLine returns what is known of the currency: digits, symbol, narrow symbol,
// the names of one and of many.
func (n *Number) moneyLine() []string {
	if v := lookup("money", n.currency); v != nil {
		return v
	}
	return []string{"2", n.currency, n.currency, n.currency, n.currency}
}

func (n *Number) currencyDigits() int {
	digits, _ := strconv.Atoi(n.moneyLine()[0])
	return digits
}

func (n *Number) money(plural string) string {
	line := n.moneyLine()
	switch n.currencyDisplay {
	case "code":
		return n.currency
	case "narrowSymbol":
		return line[2]
	case "name":
		if plural == "one" {
			return line[3]
		}
		return line[4]
	}
	return line[1]
}

func (n *Number) unitPattern(plural string) string {
	v := lookup("unit", n.unit, n.unitDisplay)
	if plural == "one" {
		return v[0]
	}
	return v[1]
}

func (n *Number) checkUnit() error {
	if lookup("unit", n.unit, n.unitDisplay) == nil {
		return rangeError("Invalid unit argument for " + "Intl.NumberFormat() '" + n.unit + "'")
	}
	return nil
}

// Resolved returns the properties of resolvedOptions, in order.
func (n *Number) Resolved() []Field {
	f := []Field{{"locale", n.locale}, {"numberingSystem", "latn"}, {"style", n.style}}
	switch n.style {
	case "currency":
		f = append(f, Field{"currency", n.currency}, Field{"currencyDisplay", n.currencyDisplay}, Field{"currencySign", n.currencySign})
	case "unit":
		f = append(f, Field{"unit", n.unit}, Field{"unitDisplay", n.unitDisplay})
	}
	f = append(f, Field{"minimumIntegerDigits", n.minInt})
	if n.maxFrac >= 0 {
		f = append(f, Field{"minimumFractionDigits", n.minFrac}, Field{"maximumFractionDigits", n.maxFrac})
	}
	if n.maxSig > 0 {
		f = append(f, Field{"minimumSignificantDigits", n.minSig}, Field{"maximumSignificantDigits", n.maxSig})
	}
	if n.grouping == "" {
		f = append(f, Field{"useGrouping", false})
	} else {
		f = append(f, Field{"useGrouping", n.grouping})
	}
	f = append(f, Field{"notation", n.notation})
	if n.notation == "compact" {
		f = append(f, Field{"compactDisplay", n.compactDisplay})
	}
	return append(f, Field{"signDisplay", n.signDisplay}, Field{"roundingIncrement", n.increment}, Field{"roundingMode", n.mode},
		Field{"roundingPriority", n.priority}, Field{"trailingZeroDisplay", n.trailing})
}
