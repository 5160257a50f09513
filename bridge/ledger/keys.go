package ledger

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// KeySize is the length of a store's key in bytes.
const KeySize = 32

// Derive returns a key for another purpose.
func Derive(key []byte, purpose string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("codemode-bridge key 1\n" + purpose))
	return m.Sum(nil)
}

// KeyName is what a store keeps of its key: it tells keys apart and reveals nothing
// about them.
func KeyName(key []byte) string { return hex.EncodeToString(Derive(key, "name")[:8]) }

// StoreSeal shows that whoever wrote the store's name had its key.
func StoreSeal(key []byte, store string) string {
	return hex.EncodeToString(Derive(key, "store "+store))
}

// SignNote returns the signature of a note that is kept for a purpose.
func SignNote(key []byte, purpose string, body []byte) string {
	m := hmac.New(sha256.New, Derive(key, purpose))
	m.Write(body)
	return hex.EncodeToString(m.Sum(nil))
}

// JournalCipher returns the cipher for the entries of a run: AES-256-GCM under the run's
// own key, with a random nonce before each text.
func JournalCipher(key []byte, run string) (cipher.AEAD, error) {
	block, err := aes.NewCipher(Derive(key, "journal "+run))
	if err != nil {
		return nil, fmt.Errorf("encrypting the journal of run %s: %w", run, err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Binding returns the data that binds an encrypted body to its place and to the
// row's other columns; hash is that of the shared bytes. The key binds it to its
// run.
func Binding(e *JournalEntry, place int64, hash []byte) []byte {
	b := make([]byte, 0, 64+len(e.Kind)+len(e.Shared)+len(hash))
	for _, n := range []int64{place, int64(e.Call)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	for _, text := range []string{string(e.Kind), e.Shared, string(hash)} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

// What is requested of a run's owner is kept in words that older releases also write
// and understand:
//
//	give BRIDGE   hand the run over; an older release does not say to whom
//	end NAME      end the run
const (
	give = "give"
	end  = "end "
)

// Unnamed stands for the requester of a handover that an older release requested.
const Unnamed = "a bridge of an older release"

// LeaseRequest returns what is requested of a run's owner, in those words.
func LeaseRequest(k *JournaledRun) string {
	switch {
	case k.CancelRequestedBy != "":
		return end + k.CancelRequestedBy
	case k.HandoverRequestedBy == Unnamed:
		return give
	case k.HandoverRequestedBy != "":
		return give + " " + k.HandoverRequestedBy
	default:
		return ""
	}
}

// ReadLeaseRequest is its inverse.
func ReadLeaseRequest(k *JournaledRun, wanted string) {
	by, cancel := strings.CutPrefix(wanted, end)
	bridge, named := strings.CutPrefix(wanted, give+" ")
	switch {
	case wanted == "":
	case cancel:
		k.CancelRequestedBy = by
	case named:
		k.HandoverRequestedBy = bridge
	default:
		k.HandoverRequestedBy = Unnamed
	}
}
