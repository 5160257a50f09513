// Package profile has the types of github.com/google/pprof/profile that goja's profiler fills
// in, which nothing here uses and which cannot be left out of goja. The real package compiles
// a dozen regular expressions before main: half a millisecond of each worker's start, of four, and
// a tenth of a worker's own memory. go.mod puts this one in its place.
package profile

import (
	"errors"
	"io"
)

// A Profile and what it has are as in the real package, as far as goja knows them.
type (
	Profile struct {
		SampleType    []*ValueType
		Sample        []*Sample
		Mapping       []*Mapping
		Location      []*Location
		Function      []*Function
		TimeNanos     int64
		DurationNanos int64
		PeriodType    *ValueType
		Period        int64
	}
	ValueType struct{ Type, Unit string }
	Sample    struct {
		Location []*Location
		Value    []int64
	}
	Mapping struct {
		ID           uint64
		File         string
		HasFunctions bool
	}
	Location struct {
		ID      uint64
		Mapping *Mapping
		Line    []Line
	}
	Line struct {
		Function     *Function
		Line, Column int64
	}
	Function struct {
		ID                         uint64
		Name, SystemName, Filename string
	}
)

// Write fails: there are no profiles of scripts.
func (*Profile) Write(io.Writer) error {
	return errors.New("this program writes no profiles of scripts")
}
