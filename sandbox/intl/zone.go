package intl

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // a worker sees no files
)

// A zoneNames has the names of a group of time zones.
type zoneNames struct {
	long, short [2]string // standard time and daylight saving time
}

// zones returns the names of time zones by their identifiers.
var zones = sync.OnceValue(func() map[string]*zoneNames {
	m := make(map[string]*zoneNames)
	for line := range strings.Lines(data) {
		rest, ok := strings.CutPrefix(line, "zone\t")
		if !ok {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(rest, "\n"), "\t")
		pair := func(i int) [2]string { return [2]string{fields[i], fields[i+1]} }
		z := &zoneNames{long: pair(1), short: pair(3)}
		for _, id := range strings.Fields(fields[0]) {
			m[id] = z
		}
	}
	return m
})

// TimeZones returns the identifiers of the time zones that have names here,
// sorted.
func TimeZones() []string {
	var list []string
	for id := range zones() {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// findZone returns a time zone by an identifier in any case, or an offset
// such as +05:30.
func findZone(id string) (name string, at *time.Location, err error) {
	unknown := rangeError("Invalid time zone specified: " + id)
	if id == "" || id == "Local" {
		return "", nil, unknown
	}
	if id[0] == '+' || id[0] == '-' {
		var hours, minutes int
		digits := strings.ReplaceAll(id[1:], ":", "")
		if len(digits) == 2 {
			digits += "00"
		}
		if _, err := fmt.Sscanf(digits, "%2d%2d", &hours, &minutes); err != nil || len(digits) != 4 || hours > 23 || minutes > 59 {
			return "", nil, unknown
		}
		seconds := (hours*60 + minutes) * 60
		if id[0] == '-' {
			seconds = -seconds
		}
		name = fmt.Sprintf("%c%02d:%02d", id[0], hours, minutes)
		return name, time.FixedZone(name, seconds), nil
	}
	switch upper := strings.ToUpper(id); upper {
	case "UTC", "GMT", "ETC/UTC", "ETC/GMT", "ETC/UCT", "UCT", "ZULU", "ETC/ZULU", "ETC/UNIVERSAL", "UNIVERSAL":
		return "UTC", time.UTC, nil
	}
	if at, err := time.LoadLocation(id); err == nil && !strings.Contains(id, "..") {
		return id, at, nil
	}
	for known := range zones() {
		if strings.EqualFold(known, id) {
			if at, err := time.LoadLocation(known); err == nil {
				return known, at, nil
			}
		}
	}
	return "", nil, unknown
}

// zoneText writes the time zone of a time in one of the styles of the option
// timeZoneName.
func (d *Date) zoneText(t time.Time) string {
	_, offset := t.Zone()
	season := 0
	if t.IsDST() {
		season = 1
	}
	names := zones()[d.zoneID]
	switch d.zoneStyle {
	case "short":
		if d.zoneID == "UTC" {
			return "UTC"
		}
		if names != nil {
			if s := names.short[season]; s != "" {
				return s
			}
		}
		if offset == 0 {
			return "GMT"
		}
	case "long":
		if d.zoneID == "UTC" {
			return "Coordinated Universal Time"
		}
		if names != nil && names.long[season] != "" {
			return names.long[season]
		}
		return gmt(offset, true)
	case "longOffset":
		return gmt(offset, true)
	}
	return gmt(offset, false)
}

// gmt writes an offset in seconds: GMT-5, or GMT-05:00 if long is set.
func gmt(offset int, long bool) string {
	sign := '+'
	if offset < 0 {
		sign, offset = '-', -offset
	}
	hours, minutes := offset/3600, offset/60%60
	switch {
	case long:
		return fmt.Sprintf("GMT%c%02d:%02d", sign, hours, minutes)
	case minutes == 0:
		return fmt.Sprintf("GMT%c%d", sign, hours)
	}
	return fmt.Sprintf("GMT%c%d:%02d", sign, hours, minutes)
}
