package wire

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

var (
	one = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	two = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32))
)

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func TestCodes(t *testing.T) {
	code := NewCode(public(one))
	secret, of, err := ParseCode(" " + strings.ToLower(code) + "\n")
	if err != nil || of != Fingerprint(public(one)) || secret+"."+of != code {
		t.Errorf("%q: %q %q %v", code, secret, of, err)
	}
	if of == Fingerprint(public(two)) || NewCode(public(one)) == code || CodeID(secret) == secret || bytes.Equal(CodeKey(secret), []byte(secret)) {
		t.Error("codes and keys are not told apart")
	}
	for _, bad := range []string{"", "x", secret, secret + ".", "." + of, secret + "." + of + "A", secret[1:] + "." + of, secret + "." + strings.Repeat("!", 16)} {
		if _, _, err := ParseCode(bad); err == nil {
			t.Errorf("%q is a code", bad)
		}
	}
}

// Every part of what is signed counts.
func TestSignatures(t *testing.T) {
	signed := func(change func(h http.Header, method, path *string, body *[]byte, key, centre *ed25519.PublicKey)) bool {
		h, method, path, body, key, centre := http.Header{}, "POST", PathRows, []byte("{}"), public(one), public(two)
		SignRequest(h, one, centre, method, path, "ann", "17", body)
		change(h, &method, &path, &body, &key, &centre)
		return RequestSigned(h, key, centre, method, path, body)
	}
	type key = *ed25519.PublicKey
	for name, test := range map[string]struct {
		want   bool
		change func(h http.Header, method, path *string, body *[]byte, k, centre key)
	}{
		"nothing":   {true, func(http.Header, *string, *string, *[]byte, key, key) {}},
		"method":    {false, func(_ http.Header, m, _ *string, _ *[]byte, _, _ key) { *m = "GET" }},
		"path":      {false, func(_ http.Header, _, p *string, _ *[]byte, _, _ key) { *p = PathLeave }},
		"body":      {false, func(_ http.Header, _, _ *string, b *[]byte, _, _ key) { *b = []byte("[]") }},
		"name":      {false, func(h http.Header, _, _ *string, _ *[]byte, _, _ key) { h.Set(HeaderLaptop, "bob") }},
		"stamp":     {false, func(h http.Header, _, _ *string, _ *[]byte, _, _ key) { h.Set(HeaderStamp, "18") }},
		"signature": {false, func(h http.Header, _, _ *string, _ *[]byte, _, _ key) { h.Set(HeaderSignature, "AAAA") }},
		"key":       {false, func(_ http.Header, _, _ *string, _ *[]byte, k, _ key) { *k = public(two) }},
		"no key":    {false, func(_ http.Header, _, _ *string, _ *[]byte, k, _ key) { *k = nil }},
		"centre":    {false, func(_ http.Header, _, _ *string, _ *[]byte, _, c key) { *c = public(one) }},
	} {
		if got := signed(test.change); got != test.want {
			t.Errorf("another %s: %v", name, got)
		}
	}
	ask := func(laptop, stamp, signature string) http.Header {
		h := http.Header{}
		h.Set(HeaderLaptop, laptop)
		h.Set(HeaderStamp, stamp)
		h.Set(HeaderSignature, signature)
		return h
	}
	asked, answer := ask("ann", "17", "s"), http.Header{}
	SignAnswer(answer, one, asked, "POST", PathRows, 200, []byte("{}"))
	for name, got := range map[string]bool{
		"method":    AnswerSigned(answer, public(one), asked, "GET", PathRows, 200, []byte("{}")),
		"path":      AnswerSigned(answer, public(one), asked, "POST", PathLeave, 200, []byte("{}")),
		"laptop":    AnswerSigned(answer, public(one), ask("bob", "17", "s"), "POST", PathRows, 200, []byte("{}")),
		"stamp":     AnswerSigned(answer, public(one), ask("ann", "18", "s"), "POST", PathRows, 200, []byte("{}")),
		"signature": AnswerSigned(answer, public(one), ask("ann", "17", "t"), "POST", PathRows, 200, []byte("{}")),
		"status":    AnswerSigned(answer, public(one), asked, "POST", PathRows, 403, []byte("{}")),
		"body":      AnswerSigned(answer, public(one), asked, "POST", PathRows, 200, []byte("[]")),
		"key":       AnswerSigned(answer, public(two), asked, "POST", PathRows, 200, []byte("{}")),
	} {
		if got {
			t.Errorf("an answer with another %s counts", name)
		}
	}
	if !AnswerSigned(answer, public(one), asked, "POST", PathRows, 200, []byte("{}")) {
		t.Error("the answer does not count")
	}
}

func TestHashText(t *testing.T) {
	var h, back Hash
	h[0], h[31] = 0xab, 1
	text, err := json.Marshal(h)
	if err != nil || json.Unmarshal(text, &back) != nil || back != h {
		t.Errorf("%s %v %v", text, err, back)
	}
	for _, bad := range []string{`"ab"`, `"zz"`, `1`} {
		if json.Unmarshal([]byte(bad), &back) == nil {
			t.Errorf("%s is a hash", bad)
		}
	}
}
