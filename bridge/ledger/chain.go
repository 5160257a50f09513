package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"
)

// A Hash identifies a row and, through its predecessor's, all rows before it.
type Hash [sha256.Size]byte

// String returns 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads what String writes, and nothing else.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if b, err := hex.DecodeString(s); err != nil || len(b) != len(h) || strings.ToLower(s) != s {
		return Hash{}, fmt.Errorf("%.80q is no hash: want %d lower-case hexadecimal digits", s, 2*len(h))
	} else {
		copy(h[:], b)
	}
	return h, nil
}

// MarshalText returns what String returns.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}

// A Checkpoint says which row a store ended with at some time, signed with the
// store's key. If it is kept where the store's owner cannot change it, it shows
// later whether the store still begins with the same rows.
type Checkpoint struct {
	Store string // the store's id
	Seq   int64
	Hash  Hash
	Time  time.Time
	MAC   Hash // HMAC-SHA-256 of the text before " mac="
}

// String returns the checkpoint as one line of text:
//
//	codemode-bridge checkpoint 1 store=ID seq=N hash=HEX time=RFC3339 mac=HEX
func (c Checkpoint) String() string { return c.signed() + " mac=" + c.MAC.String() }

func (c Checkpoint) signed() string {
	return fmt.Sprintf("codemode-bridge checkpoint 1 store=%s seq=%d hash=%s time=%s",
		c.Store, c.Seq, c.Hash, c.Time.UTC().Format(time.RFC3339Nano))
}

// Sign sets the MAC.
func (c *Checkpoint) Sign(key []byte) { c.MAC = mac(key, c.signed()) }

// SignedWith reports whether the MAC was made with key.
func (c Checkpoint) SignedWith(key []byte) bool {
	want := mac(key, c.signed())
	return hmac.Equal(want[:], c.MAC[:])
}

// ParseCheckpoint reads the line that String writes; white space around it is
// allowed. It does not check the MAC.
func ParseCheckpoint(line string) (Checkpoint, error) {
	line = strings.TrimSpace(line)
	var c Checkpoint
	var hash, at, sum string
	_, err := fmt.Sscanf(line, "codemode-bridge checkpoint 1 store=%s seq=%d hash=%s time=%s mac=%s", &c.Store, &c.Seq, &hash, &at, &sum)
	if err == nil {
		c.Hash, err = ParseHash(hash)
	}
	if err == nil {
		c.Time, err = time.Parse(time.RFC3339Nano, at)
	}
	if err == nil {
		c.MAC, err = ParseHash(sum)
	}
	if err == nil && c.String() != line {
		err = fmt.Errorf("it is not written as a checkpoint is")
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("reading a checkpoint: %w", err)
	}
	return c, nil
}

func mac(key []byte, text string) (sum Hash) {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	m.Sum(sum[:0])
	return sum
}

// HashRow returns the hash of a row of a store from its number, its
// predecessor's hash (zero for the first row) and its record's JSON text. It
// is the SHA-256 of
//
//	"codemode-bridge row 1" LF store LF seq in decimal LF previous hash in hexadecimal LF body
func HashRow(store string, seq int64, prev Hash, body []byte) Hash {
	b := make([]byte, 0, 160+len(body))
	b = append(b, "codemode-bridge row 1\n"...)
	b = append(b, store...)
	b = append(b, '\n')
	b = strconv.AppendInt(b, seq, 10)
	b = append(b, '\n')
	b = hex.AppendEncode(b, prev[:])
	b = append(b, '\n')
	b = append(b, body...)
	return sha256.Sum256(b)
}

// A Seal shows that whoever wrote a row had the store's key. Nobody without the
// key can change a row or write a new one, even by recomputing all hashes.
type Seal [16]byte

// A Keyring makes and checks the seals of one store. It must not be used
// concurrently.
type Keyring struct {
	mac   hash.Hash
	store string
	buf   []byte
}

// NewKeyring returns the keyring of a store with its secret key.
func NewKeyring(store string, key []byte) *Keyring {
	return &Keyring{mac: hmac.New(sha256.New, key), store: store}
}

// Seal returns the seal of a row: the first 16 bytes of the HMAC-SHA-256 of
//
//	"codemode-bridge seal 1" LF store LF seq in decimal LF hash in hexadecimal
func (k *Keyring) Seal(seq int64, hash Hash) (s Seal) {
	k.buf = append(k.buf[:0], "codemode-bridge seal 1\n"...)
	k.buf = append(k.buf, k.store...)
	k.buf = append(k.buf, '\n')
	k.buf = strconv.AppendInt(k.buf, seq, 10)
	k.buf = append(k.buf, '\n')
	k.buf = hex.AppendEncode(k.buf, hash[:])
	k.mac.Reset()
	k.mac.Write(k.buf)
	k.buf = k.mac.Sum(k.buf[:0])
	copy(s[:], k.buf)
	return s
}

// A Link is a row as it is stored: the record's JSON text and what chains it.
type Link struct {
	Seq  int64
	Hash Hash
	Seal Seal
	Body []byte
}
