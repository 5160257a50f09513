//go:build !linux

package footprint

// unchanged returns nothing where the system does not say what is mapped.
func unchanged() []mapping { return nil }

func (mapping) drop() {}
