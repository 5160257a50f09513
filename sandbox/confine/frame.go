package confine

import (
	"encoding/binary"
	"fmt"
	"io"
)

// maxFrame bounds an order and an answer.
const maxFrame = 1 << 20

// frame writes a message: its length, big endian, and its bytes.
func frame(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// readFrame reads a message.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, fmt.Errorf("a message of %d bytes is longer than %d", n, maxFrame)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}
