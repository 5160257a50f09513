package pins

// A sighting is what this process last wrote down, or found written, of a tool that it
// lists: the digest of that, and of what was accepted then.
type sighting struct{ listed, accepted string }

// sightings are those of one server, by the key of the tool. Nil stands for a store in
// which all bridges list the same tools, or are alone.
type sightings map[string]sighting

// elsewhere reports whether a pin, with what was accepted and what was seen since, says
// something else than the listed digest because another bridge lists another definition,
// so that it is left as it is. allow says that the tool is let in whatever it is.
func (my sightings) elsewhere(name, accepted, seen, digest string, allow bool) bool {
	if my == nil {
		return false
	}
	was, before := my[name]
	switch {
	case accepted == digest: // another's is under review; mine was, if I had listed it
		return !before || was.listed != seen
	case allow: // it was accepted when I listed it first, and then another's was
		return before && was.listed == digest
	}
	return before && was == sighting{digest, accepted}
}

// went reports whether a tool that is not listed is gone: it is not if only another bridge
// has ever listed it.
func (my sightings) went(name string) bool {
	_, before := my[name]
	return my == nil || before
}
