package confine

import "net/netip"

// A Use is something that a watched program was about to do. Whether it succeeded is not
// known.
type Use struct {
	Kind UseKind
	// Path is what a program reads, writes or starts, absolute, as it names it; or the
	// socket of the machine that it connects to.
	Path string
	New  bool // there was nothing at Path
	// Place tells that the folder of Path changes: something is made, removed or renamed
	// in it.
	Place bool
	To    netip.AddrPort // where to it connects or sends, or on what it listens
}

// A UseKind says what a program does.
type UseKind string

// The kinds of use.
const (
	Reads    UseKind = "reads"
	Writes   UseKind = "writes"
	Starts   UseKind = "starts"
	Connects UseKind = "connects"
	Listens  UseKind = "listens"
)

// A Watched is a program that runs without a box while what it uses is noted. That is an
// observation and no boundary: between the look at a system call and the call itself a
// program can change what it asks for.
type Watched struct {
	*Program
	// Own tells that it has a network of its own, so that the names of the hosts are
	// known. Without, they are addresses, and Why says why.
	Own bool
	Why string
	// Temp is the program's folder for temporary files, which is gone with it.
	Temp string

	watching // the system's part
}
