package intl

import (
	"math"
	"strconv"
	"strings"
)

// A Decimal is an exact decimal number, or an infinity, or no number.
type Decimal struct {
	neg    bool
	digits string // without zeros at either end; empty is zero
	exp    int    // the value is 0.digits * 10^exp
	nan    bool
	inf    bool
}

// Float returns the shortest decimal that reads back as x, which is what
// JavaScript prints and Node formats.
func Float(x float64) Decimal {
	switch {
	case math.IsNaN(x):
		return Decimal{nan: true}
	case math.IsInf(x, 0):
		return Decimal{neg: x < 0, inf: true}
	}
	d, _ := ParseDecimal(strconv.FormatFloat(x, 'e', -1, 64))
	return d
}

// ParseDecimal reads digits with an optional sign, point and exponent.
func ParseDecimal(s string) (d Decimal, ok bool) {
	s = strings.TrimSpace(s)
	if rest, cut := strings.CutPrefix(s, "-"); cut {
		d.neg, s = true, rest
	} else {
		s = strings.TrimPrefix(s, "+")
	}
	if s == "Infinity" {
		d.inf = true
		return d, true
	}
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(s), "e")
	if scientific {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > maxExponent || e < -maxExponent {
			return Decimal{nan: true}, false
		}
		d.exp = e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	if all == "" || strings.Trim(all, "0123456789") != "" {
		return Decimal{nan: true}, false
	}
	d.exp += len(whole)
	trimmed := strings.TrimLeft(all, "0")
	d.exp -= len(all) - len(trimmed)
	d.digits = strings.TrimRight(trimmed, "0")
	if d.digits == "" {
		d.exp = 0
	}
	return d, true
}

// maxExponent bounds what is written out as zeros; no number of JavaScript has
// a larger one.
const maxExponent = 400

func (d Decimal) zero() bool { return d.digits == "" && !d.nan && !d.inf }

// magnitude is the power of ten of the first digit; of zero it is 0.
func (d Decimal) magnitude() int {
	if d.digits == "" {
		return 0
	}
	return d.exp - 1
}

// shift multiplies by a power of ten.
func (d Decimal) shift(n int) Decimal {
	if d.digits != "" {
		d.exp += n
	}
	return d
}

// round rounds to multiples of increment * 10^place. Modes are those of
// ECMA-402.
func (d Decimal) round(place, increment int, mode string) Decimal {
	if d.nan || d.inf || d.digits == "" {
		return d
	}
	// The digits before and after the place.
	n := d.exp - place // how many digits stay
	kept, rest := "", d.digits
	switch {
	case n >= len(d.digits):
		kept, rest = d.digits+strings.Repeat("0", n-len(d.digits)), ""
	case n > 0:
		kept, rest = d.digits[:n], d.digits[n:]
	case n < 0:
		rest = strings.Repeat("0", -n) + d.digits
	}
	low, tail := kept, 0 // tail: how far beyond a multiple, in units of the place
	if increment > 1 {
		k := 0
		for i := range len(kept) {
			k = (k*10 + int(kept[i]-'0')) % increment
		}
		tail = k
		low = subtract(kept, k)
	}
	if tail == 0 && strings.Trim(rest, "0") == "" {
		return d.with(low, place)
	}
	half := compareHalf(tail, rest, increment)
	up := false
	switch mode {
	case "ceil":
		up = !d.neg
	case "floor":
		up = d.neg
	case "expand":
		up = true
	case "trunc":
	case "halfCeil":
		up = half > 0 || half == 0 && !d.neg
	case "halfFloor":
		up = half > 0 || half == 0 && d.neg
	case "halfTrunc":
		up = half > 0
	case "halfEven":
		up = half > 0 || half == 0 && odd(low, increment)
	default: // halfExpand
		up = half >= 0
	}
	if up {
		low = add(low, increment)
	}
	return d.with(low, place)
}

// with returns digits * 10^place with the sign of d.
func (d Decimal) with(digits string, place int) Decimal {
	t := strings.TrimLeft(digits, "0")
	out := Decimal{neg: d.neg, digits: strings.TrimRight(t, "0"), exp: len(t) + place}
	if out.digits == "" {
		out.exp = 0
	}
	return out
}

// compareHalf compares 2 * (tail + 0.rest) with increment.
func compareHalf(tail int, rest string, increment int) int {
	twice := 2 * tail
	first := 0
	if rest != "" {
		first = int(rest[0] - '0')
	}
	switch {
	case twice+1 < increment || twice+1 == increment && first < 5:
		return -1
	case twice+1 == increment && first == 5 && strings.Trim(rest[1:], "0") == "":
		return 0
	case twice == increment && strings.Trim(rest, "0") == "":
		return 0
	}
	return 1
}

func odd(digits string, increment int) bool {
	if increment > 1 || digits == "" {
		return false
	}
	return (digits[len(digits)-1]-'0')%2 == 1
}

func add(digits string, n int) string {
	b := []byte(digits)
	for i := len(b) - 1; i >= 0 && n > 0; i-- {
		n += int(b[i] - '0')
		b[i] = byte('0' + n%10)
		n /= 10
	}
	if n > 0 {
		return strconv.Itoa(n) + string(b)
	}
	return string(b)
}

func subtract(digits string, n int) string {
	b := []byte(digits)
	for i := len(b) - 1; i >= 0 && n > 0; i-- {
		x := int(b[i]-'0') - n%10
		n /= 10
		if x < 0 {
			x += 10
			n++
		}
		b[i] = byte('0' + x)
	}
	return string(b)
}

// places writes the digits before and after the point, without a sign.
func (d Decimal) places() (whole, fraction string) {
	switch {
	case d.digits == "":
		return "0", ""
	case d.exp <= 0:
		return "0", strings.Repeat("0", -d.exp) + d.digits
	case d.exp >= len(d.digits):
		return d.digits + strings.Repeat("0", d.exp-len(d.digits)), ""
	}
	return d.digits[:d.exp], d.digits[d.exp:]
}
