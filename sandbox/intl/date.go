package intl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Date formats times.
type Date struct {
	locale    string
	zoneID    string
	zone      *time.Location
	zoneStyle string            // of timeZoneName; empty for none
	cycle     string            // h12 or h23
	asked     map[string]string // the fields of a date and time, by option
	dateStyle string
	timeStyle string
	fraction  int    // digits of a second's fraction
	pattern   string // letters as in data.txt, literals in quotes
	month     string // n, t or l: how months are written
}

// The fields of a date and of a time, by option.
var (
	dateFields = []string{"weekday", "year", "month", "day"}
	timeFields = []string{"hour", "minute", "second"}
)

// NewDate makes the formatter of Intl.DateTimeFormat, or of the method where.
// required says which fields have to be asked for, or else defaults are added:
// date, time or any; defaults says which those are: date, time or all.
func NewDate(tag, where, required, defaults string, get Options) (*Date, error) {
	l, err := Known(tag)
	if err != nil {
		return nil, err
	}
	d := &Date{locale: l, asked: make(map[string]string)}
	r := &reader{get: get, where: where}
	r.refuse("era", "dayPeriod", "numberingSystem")
	if v, set := get("calendar"); set && v != "gregory" && v != "iso8601" {
		r.refuse("calendar")
	}
	zone, set := get("timeZone")
	if !set {
		zone = "UTC"
	}
	if d.zoneID, d.zone, err = findZone(zone); err != nil {
		r.fail(err)
	}
	d.readCycle(r)
	for _, name := range []string{"weekday", "month", "year", "day", "hour", "minute", "second"} {
		values := []string{"numeric", "2-digit"}
		switch name {
		case "weekday":
			values = []string{"narrow", "short", "long"}
		case "month":
			values = append(values, "narrow", "short", "long")
		}
		if v := r.choice(name, "", values...); v != "" {
			d.asked[name] = v
		}
	}
	d.fraction = r.number("fractionalSecondDigits", 1, 3, 0)
	d.zoneStyle = r.choice("timeZoneName", "", "short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric")
	if strings.HasSuffix(d.zoneStyle, "Generic") {
		r.fail(rangeError("timeZoneName: \"" + d.zoneStyle + "\" is not known here: write \"short\" or \"long\""))
	}
	styles := []string{"full", "long", "medium", "short"}
	d.dateStyle = r.choice("dateStyle", "", styles...)
	d.timeStyle = r.choice("timeStyle", "", styles...)
	if r.err != nil {
		return nil, r.err
	}
	if d.dateStyle != "" || d.timeStyle != "" {
		if len(d.asked) > 0 || d.fraction > 0 || d.zoneStyle != "" {
			return nil, &Error{"TypeError", "Can't set option " + d.anyAsked() + " when " + d.anyStyle() + " is used"}
		}
		switch {
		case required == "date" && d.timeStyle != "":
			return nil, &Error{"TypeError", "Invalid option : timeStyle"}
		case required == "time" && d.dateStyle != "":
			return nil, &Error{"TypeError", "Invalid option : dateStyle"}
		}
		d.stylePattern()
		return d, nil
	}
	d.fillDefaults(required, defaults)
	d.fieldPattern()
	return d, nil
}

func (d *Date) anyAsked() string {
	for _, name := range slices.Concat(dateFields, timeFields) {
		if d.asked[name] != "" {
			return name
		}
	}
	if d.fraction > 0 {
		return "fractionalSecondDigits"
	}
	return "timeZoneName"
}

func (d *Date) anyStyle() string {
	if d.dateStyle != "" {
		return "dateStyle"
	}
	return "timeStyle"
}

func (d *Date) readCycle(r *reader) {
	d.cycle = text("cycle")
	switch cycle := r.choice("hourCycle", "", "h11", "h12", "h23", "h24"); cycle {
	case "":
	case "h12", "h23":
		d.cycle = cycle
	default:
		r.fail(rangeError("hourCycle: \"" + cycle + "\" is not known here: write \"h12\" or \"h23\""))
	}
	switch v, set := r.get("hour12"); {
	case !set:
	case v == "true":
		d.cycle = "h12"
	default:
		d.cycle = "h23"
	}
}

func (d *Date) has(fields []string) bool {
	for _, f := range fields {
		if d.asked[f] != "" {
			return true
		}
	}
	return false
}

func (d *Date) fillDefaults(required, defaults string) {
	date, clock := d.has(dateFields), d.has(timeFields) || d.fraction > 0
	if required != "time" && date || required != "date" && clock {
		return
	}
	if defaults != "time" {
		d.asked["year"], d.asked["month"], d.asked["day"] = "numeric", "numeric", "numeric"
	}
	if defaults != "date" {
		d.asked["hour"], d.asked["minute"], d.asked["second"] = "numeric", "numeric", "numeric"
	}
}

// stylePattern is the pattern of dateStyle and timeStyle.
func (d *Date) stylePattern() {
	clock := ""
	switch d.timeStyle {
	case "":
	case "short":
		clock = text("time", d.cycle, "hm")
	default:
		clock = text("time", d.cycle, "hms")
		switch d.timeStyle {
		case "long":
			d.zoneStyle = "short"
		case "full":
			d.zoneStyle = "long"
		}
	}
	if d.zoneStyle != "" {
		clock += "' 'z"
	}
	if d.dateStyle == "" {
		d.pattern = clock
		return
	}
	d.pattern, d.month = text("dateStyle", d.dateStyle), text("styleMonth", d.dateStyle)
	if clock != "" {
		d.pattern += "'" + text("glue", d.dateStyle) + "'" + clock
	}
}

// fieldPattern is the pattern of the fields that are asked for.
func (d *Date) fieldPattern() {
	key := ""
	if d.asked["weekday"] != "" {
		key += "E"
	}
	if d.asked["year"] != "" {
		key += "y"
	}
	switch d.asked["month"] {
	case "":
	case "long":
		d.month = "l"
	case "short", "narrow":
		d.month = "t"
	default:
		d.month = "n"
	}
	key += d.month
	if d.asked["day"] != "" {
		key += "d"
	}
	clock := ""
	for _, f := range timeFields {
		if d.asked[f] != "" {
			clock += f[:1]
		}
	}
	if clock == "hs" { // there is no form for it
		clock = "hms"
	}
	date, hours := text("date", key), ""
	if clock != "" {
		hours = d.widths(text("time", d.cycle, clock))
	}
	if d.fraction > 0 {
		if i := strings.LastIndexByte(hours, 's'); i >= 0 {
			hours = hours[:i+1] + "'.'S" + hours[i+1:]
		} else {
			hours += "S"
		}
	}
	date = d.widths(date)
	switch {
	case date == "":
		d.pattern = hours
	case hours == "":
		d.pattern = date
	default:
		glue := d.month
		if glue == "" {
			glue = "n"
			if key == "E" || key == "d" {
				glue = key
			}
		}
		d.pattern = date + "'" + text("glue", glue) + "'" + hours
	}
	if d.zoneStyle != "" {
		if hours == "" {
			d.pattern += "', 'z"
		} else {
			d.pattern += "' 'z"
		}
	}
}

// widths sets how many digits the fields of a pattern have: two where that
// is asked for, or where the pattern has them.
func (d *Date) widths(pattern string) string {
	set := func(letter, name string) {
		if d.asked[name] != "2-digit" || strings.Contains(pattern, letter+letter) || name == "month" && d.month != "n" {
			return
		}
		if pattern == letter && name != "day" && name != "month" && name != "year" {
			return // a lone minute or second stays as it is, in Node too
		}
		for i := 0; i < len(pattern); i++ {
			switch pattern[i] {
			case '\'':
				i += strings.IndexByte(pattern[i+1:], '\'') + 1
			case letter[0]:
				pattern = pattern[:i] + letter + pattern[i:]
				return
			}
		}
	}
	set("y", "year")
	set("M", "month")
	set("d", "day")
	set("h", "hour")
	set("m", "minute")
	set("s", "second")
	return pattern
}

// Format writes a time, with the blanks that V8 writes: only parts keep the
// narrow ones.
func (d *Date) Format(t time.Time) string {
	return strings.ReplaceAll(Join(d.Parts(t)), "\u202f", " ")
}

// Parts writes a time in parts.
func (d *Date) Parts(t time.Time) (parts []Part) {
	t = t.In(d.zone)
	for i := 0; i < len(d.pattern); {
		c := d.pattern[i]
		if c == '\'' {
			end := i + 1 + strings.IndexByte(d.pattern[i+1:], '\'')
			if s := d.pattern[i+1 : end]; s != "" {
				if n := len(parts); n > 0 && parts[n-1].Type == "literal" {
					parts[n-1].Value += s
				} else {
					parts = append(parts, Part{"literal", s})
				}
			}
			i = end + 1
			continue
		}
		n := 1
		for i+n < len(d.pattern) && d.pattern[i+n] == c {
			n++
		}
		i += n
		parts = append(parts, d.field(c, n, t))
	}
	return parts
}

func (d *Date) field(letter byte, width int, t time.Time) Part {
	pad := func(n int) string {
		if width == 2 {
			return fmt.Sprintf("%02d", n)
		}
		return strconv.Itoa(n)
	}
	switch letter {
	case 'E':
		return Part{"weekday", lookup("weekdays", d.width("weekday"))[t.Weekday()]}
	case 'y':
		if width == 2 {
			return Part{"year", fmt.Sprintf("%02d", t.Year()%100)}
		}
		return Part{"year", strconv.Itoa(t.Year())}
	case 'M':
		if d.month == "n" {
			return Part{"month", pad(int(t.Month()))}
		}
		return Part{"month", lookup("months", d.width("month"))[t.Month()-1]}
	case 'd':
		return Part{"day", pad(t.Day())}
	case 'h':
		return Part{"hour", pad((t.Hour()+11)%12 + 1)}
	case 'H':
		return Part{"hour", pad(t.Hour())}
	case 'm':
		return Part{"minute", pad(t.Minute())}
	case 's':
		return Part{"second", pad(t.Second())}
	case 'S':
		return Part{"fractionalSecond", fmt.Sprintf("%03d", t.Nanosecond()/1e6)[:d.fraction]}
	case 'a':
		return Part{"dayPeriod", lookup("periods")[t.Hour()/12]}
	}
	return Part{"timeZoneName", d.zoneText(t)}
}

// width is how long the name of a month or weekday is.
func (d *Date) width(name string) string {
	if w := d.asked[name]; w != "" {
		return w
	}
	if d.dateStyle == "full" || name == "month" && d.month == "l" {
		return "long"
	}
	return "short"
}

// Resolved returns the properties of resolvedOptions, in order.
func (d *Date) Resolved() []Field {
	f := []Field{{"locale", d.locale}, {"calendar", "gregory"}, {"numberingSystem", "latn"}, {"timeZone", d.zoneID}}
	hours := strings.ContainsAny(unquoted(d.pattern), "hH")
	if hours {
		f = append(f, Field{"hourCycle", d.cycle}, Field{"hour12", d.cycle == "h12"})
	}
	if d.dateStyle == "" && d.timeStyle == "" {
		for i, letter := range []string{"E", "y", "M", "d", "hH", "m", "s"} {
			name := slices.Concat(dateFields, timeFields)[i]
			n := 0
			for _, c := range unquoted(d.pattern) {
				if strings.ContainsRune(letter, c) {
					n++
				}
			}
			switch {
			case n == 0:
			case name == "weekday" || name == "month" && d.month != "n":
				f = append(f, Field{name, d.width(name)})
			case n == 2:
				f = append(f, Field{name, "2-digit"})
			default:
				f = append(f, Field{name, "numeric"})
			}
		}
		if d.fraction > 0 {
			f = append(f, Field{"fractionalSecondDigits", d.fraction})
		}
		if d.zoneStyle != "" {
			f = append(f, Field{"timeZoneName", d.zoneStyle})
		}
	}
	if d.dateStyle != "" {
		f = append(f, Field{"dateStyle", d.dateStyle})
	}
	if d.timeStyle != "" {
		f = append(f, Field{"timeStyle", d.timeStyle})
	}
	return f
}

// unquoted returns a pattern without its literals.
func unquoted(pattern string) string {
	var b strings.Builder
	for i, s := range strings.Split(pattern, "'") {
		if i%2 == 0 {
			b.WriteString(s)
		}
	}
	return b.String()
}
