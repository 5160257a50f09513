package intl

import (
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// options are options as a test writes them: name, value, name, value.
func options(pairs ...string) Options {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// What the formatters write is compared with Node in
// sandbox/testdata/language/intl; here are the edges.

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		x    float64
		want string
		o    Options
	}{
		{1234.5, "1,234.5", options()},
		{1.005, "1.01", options("maximumFractionDigits", "2")}, // by its digits, not its bits
		{999999, "1M", options("notation", "compact")},
		{0.00001, "1E-5", options("notation", "scientific")},
		{-1e-9, "-0", options()},
		{123456789, "120,000,000", options("maximumSignificantDigits", "2")},
		{1e300, "1" + strings.Repeat(",000", 100), options()},
		{12, "12.00", options("minimumFractionDigits", "2")},
		{2.345, "$2.35", options("style", "currency", "currency", "usd")},
		{1.23, "1.25", options("minimumFractionDigits", "2", "maximumFractionDigits", "2", "roundingIncrement", "5")},
	} {
		n, err := NewNumber("", "Intl.NumberFormat", c.o)
		if err != nil {
			t.Errorf("%v: %v", c.x, err)
		} else if got := n.Format(Float(c.x)); got != c.want {
			t.Errorf("%v: %s, want %s", c.x, got, c.want)
		}
	}
}

// TestRounding holds that rounding is exact: half up of a decimal is what
// rational numbers say it is.
func TestRounding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?\d{1,30}(\.\d{1,30})?`).Draw(t, "number")
		places := rapid.IntRange(-20, 20).Draw(t, "places")
		d, ok := ParseDecimal(text)
		if !ok {
			t.Fatalf("%s is not read", text)
		}
		whole, fraction := d.round(-places, 1, "halfExpand").places()
		got, _ := new(big.Rat).SetString(whole + "." + fraction + "0")
		exact, _ := new(big.Rat).SetString(strings.TrimPrefix(text, "-"))
		scale := new(big.Rat).SetFrac(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(places, 0))), nil), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(-places, 0))), nil))
		scaled := new(big.Rat).Mul(exact, scale)
		scaled.Add(scaled, big.NewRat(1, 2))
		floor := new(big.Int).Quo(scaled.Num(), scaled.Denom())
		want := new(big.Rat).Quo(new(big.Rat).SetInt(floor), scale)
		if got.Cmp(want) != 0 {
			t.Fatalf("%s to %d places: %s, want %s", text, places, got.FloatString(25), want.FloatString(25))
		}
	})
}

// TestDecimalTwice holds that a decimal reads back what it writes.
func TestDecimalTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64().Draw(t, "x")
		whole, fraction := Float(x).places()
		text := whole + "." + fraction + "0"
		if x < 0 {
			text = "-" + text
		}
		if back, err := strconv.ParseFloat(text, 64); err != nil || back != x {
			t.Fatalf("%v was written %s", x, text)
		}
	})
}

func TestDate(t *testing.T) {
	at := time.Date(2024, 3, 10, 9, 59, 59, 0, time.UTC) // a second before New York's clocks go forward is 6:59:59
	for _, c := range []struct {
		tag, want string
		o         Options
	}{
		{"en-US", "3/10/2024, 9:59:59 AM", options()},
		{"en", "3/10/2024, 9:59:59 AM", options()},
		{"EN-us-u-nu-latn", "3/10/2024, 9:59:59 AM", options()},
		{"en-US", "3/10/2024, 5:59:59 AM", options("timeZone", "america/new_york")},
		{"en-US", "5:59:59 AM Eastern Daylight Time", options("timeStyle", "full", "timeZone", "America/New_York")},
		{"en-US", "3/10/2024, 3:29:59 PM", options("timeZone", "+05:30")},
	} {
		d, err := NewDate(c.tag, "Intl.DateTimeFormat", "any", "all", c.o)
		if err != nil {
			t.Errorf("%s: %v", c.want, err)
		} else if got := d.Format(at); got != c.want {
			t.Errorf("%s: %s, want %s", c.tag, got, c.want)
		}
	}
}

// What is not known is an error that says so.
func TestErrors(t *testing.T) {
	for want, f := range map[string]func() error{
		`the locale ja-JP is not available here: write "en-US"`: func() error { _, err := NewNumber("ja-JP", "x", options()); return err },
		`the locale en-GB is not available here: write "en-US"`: func() error { _, err := NewDate("en-GB", "x", "any", "all", options()); return err },
		`the locale de is not available here: write "en-US"`: func() error {
			_, err := NewNumber("de", "x", options("style", "unit", "unit", "day"))
			return err
		},
		`the locale fr-FR is not available here`: func() error { _, err := NewCollator("fr-FR", "x", options()); return err },
		`the locale sv is not available here`:    func() error { _, err := NewRelative("sv", options()); return err },
		"Incorrect locale information provided":  func() error { _, err := NewNumber("no_good", "x", options()); return err },
		"Value round out of range for x options property style": func() error {
			_, err := NewNumber("", "x", options("style", "round"))
			return err
		},
		"Invalid unit argument": func() error { _, err := NewNumber("", "x", options("style", "unit", "unit", "parsec")); return err },
		"Invalid time zone specified: ../etc/passwd": func() error {
			_, err := NewDate("", "x", "any", "all", options("timeZone", "../etc/passwd"))
			return err
		},
		"Invalid time zone specified: Local": func() error {
			_, err := NewDate("", "x", "any", "all", options("timeZone", "Local"))
			return err
		},
		"Can't set option month when dateStyle is used": func() error {
			_, err := NewDate("", "x", "any", "all", options("month", "long", "dateStyle", "full"))
			return err
		},
		`the option era: "short" is not known here`: func() error { _, err := NewDate("", "x", "any", "all", options("era", "short")); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestData holds that data.txt says all that the code looks up.
func TestData(t *testing.T) {
	at := time.Date(2024, 11, 5, 13, 4, 5, 0, time.UTC)
	for _, tag := range []string{Default, "en"} {
		for _, w := range []string{"", "weekday"} {
			for _, y := range []string{"", "year"} {
				for _, m := range []string{"", "numeric", "short", "long"} {
					for _, d := range []string{"", "day"} {
						for _, h := range []string{"", "hour"} {
							pairs := []string{w, "long", y, "numeric", d, "2-digit", h, "numeric"}
							if m != "" {
								pairs = append(pairs, "month", m)
							}
							f, err := NewDate(tag, "x", "any", "all", options(pairs...))
							if err != nil || f.Format(at) == "" || strings.Contains(f.Format(at), "''") {
								t.Errorf("%s %q: %v", tag, pairs, err)
							}
						}
					}
				}
			}
		}
		for _, style := range []string{"full", "long", "medium", "short"} {
			f, err := NewDate(tag, "x", "any", "all", options("dateStyle", style, "timeStyle", "short"))
			if err != nil || len(f.Format(at)) < 8 {
				t.Errorf("%s %s: %v", tag, style, err)
			}
		}
		for _, x := range []float64{0, 1, 1000, 1500, 2e6, -3e9, 4e12, 5e15, 6e20} {
			for _, display := range []string{"short", "long"} {
				n, err := NewNumber(tag, "x", options("notation", "compact", "compactDisplay", display))
				if err != nil || n.Format(Float(x)) == "" {
					t.Errorf("%s %v: %v", tag, x, err)
				}
			}
		}
	}
	for _, id := range TimeZones() {
		if _, _, err := findZone(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if n := len(TimeZones()); n < 400 {
		t.Errorf("%d time zones", n)
	}
}

func TestCollator(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
		o    Options
	}{
		{"a", "b", -1, options()},
		{"a", "B", -1, options()},
		{"z", "é", 1, options()},
		{"item 10", "item 9", 1, options("numeric", "true")},
		{"Résumé", "resume", 0, options("sensitivity", "base")},
		{"a", "A", 1, options("caseFirst", "upper")},
		{"co-op", "coop", 0, options("ignorePunctuation", "true")},
	} {
		col, err := NewCollator("en", "x", c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := col.Compare(c.a, c.b); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestSegments(t *testing.T) {
	var got []string
	for _, s := range Segments("Hi, 2 you", "word") {
		if s.Word {
			got = append(got, s.Text)
		}
	}
	if strings.Join(got, "|") != "Hi|2|you" {
		t.Errorf("words %q", got)
	}
	if list := Segments("e\u0301🇩🇪", "grapheme"); len(list) != 2 {
		t.Errorf("%d graphemes: %v", len(list), list)
	}
}
