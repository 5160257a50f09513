package sqlstore

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// How a -wal begins, but for the last bit, and the sizes of its headers. SQLite
// describes the format under "The Write-Ahead Log" in fileformat2.html.
const (
	walMagic    = 0x377f0682
	walHeader   = 32
	frameHeader = 24
)

// spoiled reports whether the file at path is a -wal that was written to but of
// which SQLite would read nothing: it would silently open the log without its
// newest rows, or without any. An unfinished write does not make such a file, nor
// does a -wal that was restarted and still has its earlier frames, which are
// already in the database.
func spoiled(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // SQLite has no locks on a -wal, which this would drop
	for {
		header := make([]byte, walHeader)
		if _, err := io.ReadFull(io.NewSectionReader(f, 0, walHeader), header); err != nil {
			return false, unlessShort(err)
		}
		number := func(at int) uint32 { return binary.BigEndian.Uint32(header[at:]) }
		magic, size := number(0), number(8)
		order := binary.ByteOrder(binary.LittleEndian)
		if magic&1 == 1 {
			order = binary.BigEndian
		}
		sum := walSum{}.add(order, header[:24])
		if magic&^1 != walMagic || !pageSize(size) || sum != (walSum{number(24), number(28)}) {
			info, err := f.Stat()
			return err == nil && info.Size() > walHeader+frameHeader, err
		}
		frame := make([]byte, frameHeader+int(size))
		if _, err := io.ReadFull(io.NewSectionReader(f, walHeader, int64(len(frame))), frame); err != nil {
			return false, unlessShort(err)
		}
		again := make([]byte, walHeader)
		if _, err := f.ReadAt(again, 0); err != nil {
			return false, unlessShort(err)
		}
		if string(again) != string(header) {
			continue // somebody restarted it meanwhile
		}
		field := func(at int) uint32 { return binary.BigEndian.Uint32(frame[at:]) }
		if field(8) == number(16)-1 { // SQLite counts the first salt up when it begins again
			return false, nil
		}
		sum = sum.add(order, frame[:8]).add(order, frame[frameHeader:])
		return field(8) != number(16) || field(12) != number(20) || sum != (walSum{field(16), field(20)}), nil
	}
}

// pageSize reports whether a database can have pages of that many bytes.
func pageSize(n uint32) bool { return 512 <= n && n <= 65536 && n&(n-1) == 0 }

func unlessShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// A walSum is the checksum of a -wal, which each frame continues.
type walSum [2]uint32

func (s walSum) add(order binary.ByteOrder, b []byte) walSum {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
	return s
}

// checkWAL looks at the -wal before SQLite opens it for writing, which would
// remove one that it cannot read. A log that consists of nothing else is damaged;
// one that merely ends too early cannot be distinguished from one after a power
// cut, and is left to the checkpoints.
func checkWAL(ctx context.Context, o *Options) error {
	bad, err := spoiled(o.Path + "-wal")
	if err != nil || !bad {
		return err
	}
	pool, err := connect(o.Path, "ro", 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	var rows bool
	if err := pool.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM rows) OR EXISTS (SELECT 1 FROM recent)").Scan(&rows); err != nil {
		return err
	}
	if !rows {
		return damaged("it has no rows, and its -wal, which had some, cannot be read")
	}
	o.Logger.Warn("the -wal of the audit log cannot be read: its newest rows may be lost", "file", o.Path+"-wal")
	return nil
}
