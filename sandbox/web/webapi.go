package web

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
	"golang.org/x/net/idna"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"codemode-bridge/sandbox/values"
)

// The native functions of prelude/url.js, text.js and crypto.js.

// domains gives prelude/url.js the ASCII form of domains.
func (r *World) domains() []goja.Value {
	profile := idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))
	return []goja.Value{r.VM.ToValue(func(c goja.FunctionCall) goja.Value {
		host, err := profile.ToASCII(strings.ToLower(c.Argument(0).String()))
		if err != nil {
			return goja.Undefined()
		}
		return r.VM.ToValue(host)
	})}
}

// encodings are the labels of the WHATWG encoding standard that are in use.
var encodings = map[string]string{
	"utf-8": "utf-8", "utf8": "utf-8", "unicode-1-1-utf-8": "utf-8",
	"utf-16": "utf-16le", "utf-16le": "utf-16le", "ucs-2": "utf-16le", "utf-16be": "utf-16be",
	"latin1": "windows-1252", "ascii": "windows-1252", "us-ascii": "windows-1252", "iso-8859-1": "windows-1252", "windows-1252": "windows-1252", "cp1252": "windows-1252",
}

var decoders = map[string]encoding.Encoding{
	"utf-8":        unicode.UTF8,
	"utf-16le":     unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM),
	"utf-16be":     unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	"windows-1252": charmap.Windows1252,
}

// textCoders gives prelude/text.js UTF-8 in one direction, and the encodings
// that are known in the other.
func (r *World) textCoders() []goja.Value {
	encode := func(c goja.FunctionCall) goja.Value {
		return r.VM.ToValue(r.VM.NewArrayBuffer([]byte(strings.ToValidUTF8(c.Argument(0).String(), "\ufffd"))))
	}
	decode := func(c goja.FunctionCall) goja.Value {
		buffer, ok := c.Argument(0).Export().(goja.ArrayBuffer)
		if !ok {
			panic(r.VM.NewTypeError("TextDecoder.decode: the argument must be a buffer or a typed array, got %s", values.Describe(c.Argument(0))))
		}
		b := buffer.Bytes()
		from := min(max(c.Argument(1).ToInteger(), 0), int64(len(b)))
		b = b[from:min(from+max(c.Argument(2).ToInteger(), 0), int64(len(b)))]
		name, fatal, stream := c.Argument(3).String(), c.Argument(4).ToBoolean(), c.Argument(5).ToBoolean()
		open := 0
		if stream {
			open = unfinished(b, name)
			b = b[:len(b)-open]
		}
		if fatal && !wellFormed(b, name) {
			panic(r.VM.NewTypeError("The encoded data was not valid for encoding %s", name))
		}
		text, err := decoders[name].NewDecoder().Bytes(b)
		if err != nil {
			panic(r.VM.NewTypeError("TextDecoder.decode: %s", err.Error()))
		}
		return r.VM.NewArray(string(text), open)
	}
	known := func(c goja.FunctionCall) goja.Value {
		if name, ok := encodings[strings.ToLower(strings.TrimSpace(c.Argument(0).String()))]; ok {
			return r.VM.ToValue(name)
		}
		return goja.Undefined()
	}
	return []goja.Value{r.VM.ToValue(encode), r.VM.ToValue(decode), r.VM.ToValue(known)}
}

// wellFormed reports whether bytes can be of an encoding, as far as that is
// cheap to tell.
func wellFormed(b []byte, encoding string) bool {
	switch encoding {
	case "utf-8":
		return utf8.Valid(b)
	case "utf-16le", "utf-16be":
		return len(b)%2 == 0
	}
	return true
}

// unfinished counts the bytes at the end that are the beginning of a character.
func unfinished(b []byte, encoding string) int {
	switch encoding {
	case "utf-16le", "utf-16be":
		return len(b) % 2
	case "utf-8":
		for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
			if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) {
					return n
				}
				break
			}
		}
	}
	return 0
}

var hashes = map[string]func() hash.Hash{"SHA-1": sha1.New, "SHA-256": sha256.New, "SHA-384": sha512.New384, "SHA-512": sha512.New}

// cryptoParts gives prelude/crypto.js bytes from the run's seed, and hashes
// with and without a key.
func (r *World) cryptoParts() []goja.Value {
	random := func(c goja.FunctionCall) goja.Value {
		n := c.Argument(0).ToInteger()
		if n < 0 || n > 65536 {
			panic(r.VM.NewTypeError("crypto.getRandomValues: at most 65536 bytes at once"))
		}
		b := make([]byte, n)
		r.host.Random(b)
		return r.VM.ToValue(r.VM.NewArrayBuffer(b))
	}
	bytes := func(v goja.Value) []byte {
		b, _ := v.Export().(goja.ArrayBuffer)
		return b.Bytes()
	}
	sum := func(h hash.Hash, data []byte) goja.Value {
		h.Write(data)
		return r.VM.ToValue(r.VM.NewArrayBuffer(h.Sum(nil)))
	}
	digest := func(c goja.FunctionCall) goja.Value {
		return sum(hashes[c.Argument(0).String()](), bytes(c.Argument(1)))
	}
	mac := func(c goja.FunctionCall) goja.Value {
		return sum(hmac.New(hashes[c.Argument(0).String()], bytes(c.Argument(1))), bytes(c.Argument(2)))
	}
	return []goja.Value{r.VM.ToValue(random), r.VM.ToValue(digest), r.VM.ToValue(mac)}
}
