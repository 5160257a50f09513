package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // machines without a zone database have time zones too
)

// clock is the server "time".
type clock struct {
	now func() time.Time
}

const stampSchema = `{"type":"object","required":["iso","unix","unix_ms","timezone","offset","weekday"],"properties":{` + stampFields + `}}`

const stampFields = `"iso":{"type":"string","format":"date-time"},"unix":{"type":"integer","description":"Seconds since 1970"},` +
	`"unix_ms":{"type":"integer"},"timezone":{"type":"string"},"offset":{"type":"string","description":"Such as +01:00"},"weekday":{"type":"string"}`

const timeDoc = `A time: ISO 8601 ("2026-03-01T09:00:00+01:00", "2026-03-01 09:00", "2026-03-01"), "09:00" for today, ` +
	`RFC 1123, or seconds since 1970 as a number. Without an offset it is in `

const zoneDoc = `IANA time zone ("Europe/Berlin") or offset ("+05:30")`

func (c clock) server() *server {
	s := newServer("time", "Times, time zones and durations.")
	add(s, tool{
		name: "now", title: "Current time", volatile: true,
		description: "The current time.",
		params:      []param{{name: "timezone", kind: text, doc: zoneDoc, fallback: "UTC"}},
		output:      stampSchema,
		run: func(a args) (any, error) {
			zone, err := location(a.text("timezone", "UTC"))
			if err != nil {
				return nil, err
			}
			return stampOf(c.now().In(zone))
		},
	})
	add(s, tool{
		name: "convert", title: "Convert a time to another zone",
		description: "The same moment in another time zone.",
		params: []param{
			{name: "time", kind: instant, required: true, doc: timeDoc + "the zone from."},
			{name: "from", kind: text, doc: zoneDoc, fallback: "UTC"},
			{name: "to", kind: text, required: true, doc: zoneDoc},
		},
		output:   stampSchema,
		volatile: true, // "09:00" means today
		run: func(a args) (any, error) {
			t, err := c.read(a, "time", "from")
			if err != nil {
				return nil, err
			}
			zone, err := location(a.text("to", ""))
			if err != nil {
				return nil, err
			}
			return stampOf(t.In(zone))
		},
	})
	add(s, tool{
		name: "add", title: "Add a duration to a time",
		description: "A time plus a duration. Months and years keep the day of the month, or take the month's last; days keep the time of day.",
		params: []param{
			{name: "time", kind: instant, required: true, doc: timeDoc + "timezone."},
			{name: "duration", kind: text, required: true, doc: `ISO 8601 ("P1M2DT3H", "-P1W") or units ("1d 12h", "-90m", "2 weeks")`},
			{name: "timezone", kind: text, doc: zoneDoc, fallback: "UTC"},
		},
		output:   stampSchema,
		volatile: true,
		run: func(a args) (any, error) {
			t, err := c.read(a, "time", "timezone")
			if err != nil {
				return nil, err
			}
			d, err := readDuration(a.text("duration", ""))
			if err != nil {
				return nil, err
			}
			if t, err = d.addTo(t); err != nil {
				return nil, err
			}
			return stampOf(t)
		},
	})
	add(s, tool{
		name: "diff", title: "Time between two times",
		description: "How much time lies between two times; negative if to is before from.",
		params: []param{
			{name: "from", kind: instant, required: true, doc: timeDoc + "timezone."},
			{name: "to", kind: instant, required: true, doc: "A time, like from."},
			{name: "timezone", kind: text, doc: zoneDoc, fallback: "UTC"},
		},
		output: `{"type":"object","required":["seconds","days","iso"],"properties":{"seconds":{"type":"number"},` +
			`"days":{"type":"number","description":"Of 24 hours"},"iso":{"type":"string","description":"ISO 8601 duration in days of 24 hours"}}}`,
		volatile: true,
		run: func(a args) (any, error) {
			from, err := c.read(a, "from", "timezone")
			if err != nil {
				return nil, err
			}
			to, err := c.read(a, "to", "timezone")
			if err != nil {
				return nil, err
			}
			// In milliseconds: a time.Duration reaches only 292 years.
			ms := to.UnixMilli() - from.UnixMilli()
			return map[string]any{"seconds": float64(ms) / 1e3, "days": float64(ms) / 864e5, "iso": isoDuration(ms)}, nil
		},
	})
	add(s, tool{
		name: "parse", title: "Read a time",
		description: "Read a time in one of the usual forms. What is ambiguous is an error: give order for dates like 03/04/2026.",
		params: []param{
			{name: "text", kind: text, required: true, doc: timeDoc + "timezone. Also \"1 March 2026\", \"March 1, 2026 9:00 AM\", \"01/03/2026\"."},
			{name: "order", kind: text, enum: []string{"dmy", "mdy"}, doc: "Which comes first in dates like 03/04/2026"},
			{name: "timezone", kind: text, doc: zoneDoc, fallback: "UTC"},
		},
		output:   stampSchema,
		volatile: true,
		run: func(a args) (any, error) {
			zone, err := location(a.text("timezone", "UTC"))
			if err != nil {
				return nil, err
			}
			t, err := c.readText(a.text("text", ""), zone, a.text("order", ""))
			if err != nil {
				return nil, err
			}
			return stampOf(t)
		},
	})
	add(s, tool{
		name: "format", title: "Write a time",
		description: `Write a time by a pattern of strftime: %Y %m %d %H %M %S %y %b %B %a %A %I %p %j %e %L (milliseconds) %z %Z %s %F %T %%.`,
		params: []param{
			{name: "time", kind: instant, required: true, doc: timeDoc + "timezone."},
			{name: "pattern", kind: text, required: true, doc: `Such as "%d.%m.%Y %H:%M"`},
			{name: "timezone", kind: text, doc: zoneDoc, fallback: "UTC"},
		},
		output:   `{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`,
		volatile: true,
		run: func(a args) (any, error) {
			t, err := c.read(a, "time", "timezone")
			if err != nil {
				return nil, err
			}
			zone, err := location(a.text("timezone", "UTC"))
			if err != nil {
				return nil, err
			}
			s, err := strftime(t.In(zone), a.text("pattern", ""))
			return map[string]any{"text": s}, err
		},
	})
	return s
}

// location is the zone with that name. It refuses "Local", the machine's own, which
// would tell where the bridge runs.
func location(name string) (*time.Location, error) {
	if m := offsetPattern.FindStringSubmatch(name); m != nil {
		hours, _ := strconv.Atoi(m[2])
		minutes, _ := strconv.Atoi(m[3])
		if hours <= 14 && minutes <= 59 {
			seconds := hours*3600 + minutes*60
			if m[1] == "-" {
				seconds = -seconds
			}
			return time.FixedZone(m[1]+m[2]+":"+fmt.Sprintf("%02d", minutes), seconds), nil
		}
	}
	switch name {
	case "Z", "UTC", "":
		return time.UTC, nil
	case "Local":
		return nil, errors.New(`there is no time zone "Local": use an IANA name such as "Europe/Berlin"`)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone %q: use an IANA name such as %q, or an offset such as %q", cut(name), "Europe/Berlin", "+02:00")
	}
	return zone, nil
}

var offsetPattern = regexp.MustCompile(`^([+-])(\d{2}):?(\d{2})?$`)

// stamp is a time in a zone, as the tools answer it.
type stamp struct {
	ISO      string `json:"iso"`
	Unix     int64  `json:"unix"`
	UnixMS   int64  `json:"unix_ms"`
	Timezone string `json:"timezone"`
	Offset   string `json:"offset"`
	Weekday  string `json:"weekday"`
}

func stampOf(t time.Time) (any, error) {
	if t.Year() < 1 || t.Year() > 9999 {
		return nil, errors.New("the year is not between 1 and 9999")
	}
	zone := t.Location().String()
	if zone == "" {
		zone = t.Format("-07:00")
	}
	return stamp{
		ISO: t.Format(time.RFC3339Nano), Unix: t.Unix(), UnixMS: t.UnixMilli(),
		Timezone: zone, Offset: t.Format("-07:00"), Weekday: t.Weekday().String(),
	}, nil
}

// read reads the time in the argument name, in the zone that the argument zone names
// unless it has an offset of its own, and returns it in that zone.
func (c clock) read(a args, name, zone string) (time.Time, error) {
	location, err := location(a.text(zone, "UTC"))
	if err != nil {
		return time.Time{}, err
	}
	var n json.Number
	if json.Unmarshal(a[name], &n) == nil && n != "" && a[name][0] != '"' {
		return readUnix(n.String(), location)
	}
	t, err := c.readText(a.text(name, ""), location, "")
	if err != nil {
		return time.Time{}, err
	}
	return t.In(location), nil
}

func readUnix(text string, zone *time.Location) (time.Time, error) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(seconds) > 253402300799 { // the end of 9999
		return time.Time{}, fmt.Errorf("%s is no number of seconds since 1970 (milliseconds must be divided by 1,000)", cut(text))
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(part*1e6))*1e3).In(zone), nil
}

var (
	layouts = []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02T15:04Z07:00",
		"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 Z07:00", "2006-01-02 15:04:05.999999999 -0700",
		"2006-01-02T15:04:05.999999999-0700", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02", "20060102T150405Z07:00",
		"20060102T150405", "2006/01/02 15:04:05", "2006/01/02 15:04", "2006/01/02",
		time.RFC1123Z, time.RFC1123, time.RFC822Z, time.RFC850, time.ANSIC, time.UnixDate, time.RubyDate,
		"Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 MST",
	}
	dates = []string{
		"2 January 2006", "2 Jan 2006", "January 2, 2006", "Jan 2, 2006", "January 2 2006", "Jan 2 2006",
		"Monday, 2 January 2006", "Monday, January 2, 2006", "02.01.2006", "2.1.2006",
	}
	ordered  = map[string][]string{"dmy": {"2/1/2006", "2-1-2006"}, "mdy": {"1/2/2006", "1-2-2006"}}
	times    = []string{"", " 15:04", " 15:04:05", " 3:04 PM", " 3:04PM", " 3 PM", ", 15:04", " at 15:04", " at 3:04 PM"}
	ofDay    = []string{"15:04", "15:04:05", "3:04 PM", "3:04PM"}
	slashed  = regexp.MustCompile(`^\d{1,2}[/-]\d{1,2}[/-]\d{4}`)
	unixForm = regexp.MustCompile(`^-?\d{9,11}(\.\d+)?$`)
)

// readText reads a time in any of the accepted forms.
func (c clock) readText(s string, zone *time.Location, order string) (time.Time, error) {
	s = strings.TrimSpace(s)
	if len(s) > 100 {
		return time.Time{}, fmt.Errorf("%q is too long for a time", cut(s))
	}
	if unixForm.MatchString(s) {
		return readUnix(s, zone)
	}
	for _, layout := range layouts {
		t, err := time.ParseInLocation(layout, s, zone)
		if err != nil {
			continue
		}
		if name, offset := t.Zone(); strings.Contains(layout, "MST") && offset == 0 && !slices.Contains([]string{"UTC", "GMT", zone.String()}, name) {
			// Go takes an abbreviation that it does not know for a zone with offset 0.
			return time.Time{}, fmt.Errorf("the zone %s in %q is ambiguous: write its offset, such as +02:00", name, s)
		}
		return t, nil
	}
	for _, layout := range ofDay {
		if t, err := time.Parse(layout, strings.ToUpper(s)); err == nil {
			y, m, d := c.now().In(zone).Date()
			return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, zone), nil
		}
	}
	forms := dates
	if slashed.MatchString(s) {
		if order == "" {
			return time.Time{}, fmt.Errorf("%q may be day or month first: use time.parse with order, or write it as YYYY-MM-DD", s)
		}
		forms = ordered[order]
	}
	for _, date := range forms {
		for _, clock := range times {
			if t, err := time.ParseInLocation(date+clock, s, zone); err == nil {
				return t, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time that can be read: write it as 2026-03-01T09:00:00+01:00", cut(s))
}

// A span is a duration: a part in calendar units, which have no fixed length, and a part
// in seconds.
type span struct {
	years, months, days int
	seconds             float64
}

var (
	isoPattern  = regexp.MustCompile(`^([+-]?)P(?:(\d{1,6})Y)?(?:(\d{1,6})M)?(?:(\d{1,6})W)?(?:(\d{1,8})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:\.\d{1,9})?)S)?)?$`)
	unitPattern = regexp.MustCompile(`^(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]+)[\s,]*`)
)

func readDuration(s string) (span, error) {
	bad := fmt.Errorf("%q is no duration: write it as P1DT12H, or as 1d 12h", cut(s))
	text := strings.TrimSpace(s)
	if m := isoPattern.FindStringSubmatch(strings.ToUpper(text)); m != nil && len(m[0]) > len(m[1])+1 && !strings.HasSuffix(m[0], "T") {
		n := func(i int) int { v, _ := strconv.Atoi(m[i]); return v } // m[i] has digits only, or is empty for 0
		seconds, _ := strconv.ParseFloat(m[8], 64)
		d := span{n(2), n(3), n(4)*7 + n(5), float64(n(6))*3600 + float64(n(7))*60 + seconds}
		return d.signed(m[1]), nil
	}
	text = strings.ToLower(text)
	sign := ""
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign, text = text[:1], strings.TrimSpace(text[1:])
	}
	if text == "" {
		return span{}, bad
	}
	var d span
	for text != "" {
		m := unitPattern.FindStringSubmatch(text)
		if m == nil {
			return span{}, bad
		}
		text = text[len(m[0]):]
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return span{}, bad
		}
		unit := m[2]
		if len(unit) > 2 {
			unit = strings.TrimSuffix(unit, "s")
		}
		calendar := n == math.Trunc(n)
		switch unit {
		case "y", "yr", "year":
			d.years += int(n)
		case "mo", "month":
			d.months += int(n)
		case "w", "wk", "week":
			n *= 7
			calendar = n == math.Trunc(n)
			d.days += int(n)
		case "d", "day":
			d.days += int(n)
		case "h", "hr", "hour":
			d.seconds, calendar = d.seconds+n*3600, true
		case "m", "min", "minute":
			d.seconds, calendar = d.seconds+n*60, true
		case "s", "sec", "second":
			d.seconds, calendar = d.seconds+n, true
		case "ms", "millisecond":
			d.seconds, calendar = d.seconds+n/1e3, true
		default:
			return span{}, fmt.Errorf("%q is no unit of time: y, mo, w, d, h, m, s, ms are", cut(m[2]))
		}
		if !calendar {
			return span{}, fmt.Errorf("%s%s is no whole number of %s: use hours", m[1], m[2], "days")
		}
	}
	return d.signed(sign), nil
}

func (d span) signed(sign string) span {
	if sign == "-" {
		return span{-d.years, -d.months, -d.days, -d.seconds}
	}
	return d
}

// addTo adds the calendar units in t's zone, then the seconds.
func (d span) addTo(t time.Time) (time.Time, error) {
	if abs(d.years) > 20000 || abs(d.months) > 240000 || abs(d.days) > 8000000 || math.Abs(d.seconds) > 9e9 {
		return time.Time{}, errors.New("the duration is too long")
	}
	if d.years != 0 || d.months != 0 {
		// A month after January 31 is the last day of February; AddDate would return
		// a day in March.
		y, m, day := t.Date()
		first := time.Date(y+d.years, m+time.Month(d.months), 1, 0, 0, 0, 0, time.UTC)
		last := first.AddDate(0, 1, -1).Day()
		t = time.Date(first.Year(), first.Month(), min(day, last), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
	}
	whole, part := math.Modf(d.seconds)
	return t.AddDate(0, 0, d.days).Add(time.Duration(whole) * time.Second).Add(time.Duration(math.Round(part*1e6)) * time.Microsecond), nil
}

func abs(n int) int { return max(n, -n) }

// isoDuration writes milliseconds in days, hours, minutes and seconds.
func isoDuration(ms int64) string {
	sign := ""
	if ms < 0 {
		sign, ms = "-", -ms
	}
	s := sign + "P"
	if d := ms / 864e5; d > 0 {
		s += fmt.Sprintf("%dD", d)
	}
	ms %= 864e5
	if ms > 0 {
		s += "T"
		if h := ms / 36e5; h > 0 {
			s += fmt.Sprintf("%dH", h)
		}
		if m := ms % 36e5 / 6e4; m > 0 {
			s += fmt.Sprintf("%dM", m)
		}
		if rest := ms % 6e4; rest > 0 {
			s += strconv.FormatFloat(float64(rest)/1e3, 'f', -1, 64) + "S"
		}
	}
	if strings.HasSuffix(s, "P") {
		return "PT0S"
	}
	return s
}

// directives maps the letters of strftime to layouts of package time.
var directives = map[byte]string{
	'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'b': "Jan", 'B': "January",
	'a': "Mon", 'A': "Monday", 'I': "03", 'p': "PM", 'j': "002", 'e': "_2", 'z': "-0700", 'Z': "MST",
	'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'L': ".000",
}

func strftime(t time.Time, pattern string) (string, error) {
	if len(pattern) > 1000 {
		return "", errors.New("the pattern has more than 1,000 bytes")
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			b.WriteByte(pattern[i])
			continue
		}
		if i++; i == len(pattern) {
			return "", errors.New("the pattern ends after %")
		}
		switch c := pattern[i]; {
		case c == '%':
			b.WriteByte('%')
		case c == 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case directives[c] != "":
			b.WriteString(strings.TrimPrefix(t.Format(directives[c]), "."))
		default:
			known := []string{"%", "s"}
			for d := range directives {
				known = append(known, string(d))
			}
			slices.Sort(known)
			return "", fmt.Errorf("%%%s is not known: after %% comes one of %s", string([]rune(pattern[i:])[:1]), strings.Join(known, " "))
		}
	}
	return b.String(), nil
}
