package provenance

// A Piece is one thing that was found, as it is written down: where it stands and whose it is, never the text itself.
type Piece struct {
	Kind     string // see the constants
	Source   Source // the zero Source if it may be from anywhere
	Argument string // dotted path, in display form; empty of what is lost
	Span     Span
}

// The kinds of a Piece.
const (
	KindRun   = ""      // characters in common
	KindValue = "value" // a short value that identifies
	KindMore  = "more"  // one of both that nobody is shown
	KindName  = "name"  // a proper name
	KindLost  = "lost"  // not all is remembered that was read there: nobody knows whether something of it is sent
)

// Pieces returns everything that was found, and the names, which [Memory.Names] finds. Of the runs it has each span; of
// all else, which may be much, one piece for each source.
func (f Found) Pieces(names []Run) (all []Piece) {
	for _, run := range f.Runs {
		for _, span := range run.Spans {
			all = append(all, Piece{KindRun, run.Source, run.Argument, span})
		}
	}
	once := func(kind string, runs []Run) {
		had := map[int]bool{}
		for _, run := range runs {
			if had[run.Source.Call] {
				continue
			}
			had[run.Source.Call] = true
			p := Piece{Kind: kind, Source: run.Source, Argument: run.Argument}
			if len(run.Spans) > 0 {
				p.Span = run.Spans[0]
			}
			all = append(all, p)
		}
	}
	once(KindValue, f.Values)
	once(KindMore, f.Also)
	once(KindName, names)
	for _, source := range f.Lost {
		all = append(all, Piece{Kind: KindLost, Source: source})
	}
	if f.Partly && len(f.Lost) == 0 {
		all = append(all, Piece{Kind: KindLost, Source: Source{Unlabelled: true}})
	}
	return all
}
