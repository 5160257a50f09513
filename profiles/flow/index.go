package flow

import (
	"encoding/binary"
	"slices"
)

// block is the length of the pieces that what was read is cut into, in folded bytes. A
// run of MinRun holds a whole piece wherever it begins.
const block = MinRun / 2

// An index says where the blocks of texts stand, and the short values.
type index struct {
	texts  []*text
	slots  []slot            // open addressing; its length is a power of two
	used   int               // of the slots
	next   []uint32          // by block: the one before it with the same hash, 1 more than its number
	values map[value][]*text // one of each class
}

// A slot has the last block of one hash.
type slot struct {
	tag  uint32
	last uint32 // 1 more than its number; 0 is an empty slot
}

const multiplier = 0x9E3779B97F4A7C15

// hashOf mixes the bytes of one block.
func hashOf(b []byte) uint64 {
	_ = b[block-1]
	h := (binary.LittleEndian.Uint64(b) ^ uint64(binary.LittleEndian.Uint32(b[8:]))*0xD6E8FEB86659FD93) * multiplier
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	return h ^ h>>32
}

// add puts a text into the index.
func (x *index) add(t *text) {
	if x.values == nil {
		x.values = map[value][]*text{}
	}
	for _, v := range t.values {
		if had := x.values[v]; !slices.ContainsFunc(had, func(o *text) bool { return o.class == t.class }) {
			x.values[v] = append(had, t)
		}
	}
	t.first = uint32(len(x.next))
	x.texts = append(x.texts, t)
	for at := 0; at+block <= len(t.folded); at += block {
		if x.used*4 >= len(x.slots)*3 {
			x.grow()
		}
		h := hashOf(t.folded[at:])
		s := x.slot(h)
		if s.last == 0 {
			s.tag = uint32(h)
			x.used++
		}
		x.next = append(x.next, s.last)
		s.last = uint32(len(x.next))
	}
}

// slot returns the one of a hash, which is empty if there is none yet. Two hashes with
// the same tag and slot share it.
func (x *index) slot(h uint64) *slot {
	mask := uint64(len(x.slots) - 1)
	for i := h >> 32 & mask; ; i = (i + 1) & mask {
		if s := &x.slots[i]; s.last == 0 || s.tag == uint32(h) {
			return s
		}
	}
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]slot, max(1024, 2*len(old)))
	for _, s := range old {
		if s.last != 0 {
			t, at := x.block(s.last - 1)
			into := x.slot(hashOf(t.folded[at:]))
			*into = s
		}
	}
}

// block returns where a block stands.
func (x *index) block(n uint32) (t *text, at int) {
	lo, hi := 0, len(x.texts) // the last text whose first block is at most n, and which has blocks
	for lo < hi {
		if mid := (lo + hi) / 2; x.texts[mid].first <= n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	t = x.texts[lo-1]
	return t, int(n-t.first) * block
}
