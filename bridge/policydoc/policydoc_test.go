package policydoc

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func key(t testing.TB) (private, public string) {
	t.Helper()
	private, public, err := GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

func sign(t testing.TB, private, text string, serial int64, when Validity) Envelope {
	t.Helper()
	k, err := ParsePrivate(private + "\n")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Sign([]byte(text), k, serial, when)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestSignAndVerify(t *testing.T) {
	private, public := key(t)
	_, other := key(t)
	at := time.Date(2026, 11, 23, 12, 0, 0, 1, time.FixedZone("", 3600))
	until := at.Add(time.Hour)
	written, err := json.Marshal(sign(t, private, "{}", 7, Validity{&at, &until}))
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseEnvelope(written)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Verify([]byte("{}"), public); err != nil {
		t.Error(err)
	}
	for name, row := range map[string]struct {
		change func(*Envelope)
		text   string
		key    string
		want   string
	}{
		"another document": {func(*Envelope) {}, "{ }", public, "another document"},
		"another key":      {func(*Envelope) {}, "{}", other, "another key"},
		"key replaced":     {func(e *Envelope) { e.Key = other }, "{}", other, "signature is wrong"},
		"serial":           {func(e *Envelope) { e.Serial++ }, "{}", public, "signature is wrong"},
		"digest":           {func(e *Envelope) { e.SHA256 = Digest([]byte("{ }")) }, "{ }", public, "signature is wrong"},
		"expiry":           {func(e *Envelope) { e.Expires = nil }, "{}", public, "signature is wrong"},
		"beginning":        {func(e *Envelope) { e.NotBefore = &until }, "{}", public, "signature is wrong"},
		"no signature":     {func(e *Envelope) { e.Signature = "" }, "{}", public, "signature is wrong"},
	} {
		changed := e
		row.change(&changed)
		if err := changed.Verify([]byte(row.text), row.key); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
	for now, fine := range map[time.Time]bool{at.Add(-time.Hour): false, at: true, until.Add(-time.Minute): true, until: false} {
		if err := e.Valid(now); (err == nil) != fine {
			t.Errorf("at %v: %v", now, err)
		}
	}
	k, _ := ParsePrivate(private)
	for _, serial := range []int64{0, -1, MaxSerial + 1} {
		if _, err := Sign(nil, k, serial, Validity{}); err == nil {
			t.Errorf("the serial %d was signed", serial)
		}
	}
	if _, err := Sign(nil, k, 1, Validity{&until, &at}); err == nil {
		t.Error("a document was signed that expires before it begins")
	}
}

func TestIncludes(t *testing.T) {
	_, public := key(t)
	sum := Digest(nil)
	for text, want := range map[string]string{
		`"team.json"`: "",
		`{"url": "https://a.example/x", "sha256": "` + sum + `"}`:                                      "",
		`{"url": "https://a.example/x", "key": "` + public + `", "token": "${POLICY_T}"}`:              "",
		`{"url": "https://a.example/x", "key": "` + public + `", "token": "${keyring:POLICY_TOKEN}"}`:  "",
		`{"url": "https://a.example/x", "key": "` + public + `", "token": "${file:~/x/policy-token}"}`: "",
		`{"url": "https://a.example/x", "key": "` + public + `", "token": "${GITHUB_TOKEN}"}`:          "nothing else is sent",
		`{"url": "https://a.example/x", "key": "` + public + `", "token": "${keyring:GITHUB_TOKEN}"}`:  "nothing else is sent",
		`{"url": "https://a.example/x", "key": "` + public + `", "token": "${file:policy/../id_rsa}"}`: "nothing else is sent",
		`{"url": "https://a.example/x", "key": "` + public + `", "token": "${exec:pass policy}"}`:      "output of a command",
		`{"url": "http://127.0.0.1:1/x", "key": "` + public + `"}`:                                     "",
		`"https://a.example/x"`:          `write {"url"`,
		`""`:                             "is empty",
		`7`:                              "must be a file",
		`{"url": "https://a.example/x"}`: "exactly one",
		`{"url": "https://a.example/x", "key": "` + public + `", "sha256": "` + sum + `"}`: "exactly one",
		`{"url": "http://a.example/x", "sha256": "` + sum + `"}`:                           "not https",
		`{"url": "http://127.0.0.1.a.example/x", "sha256": "` + sum + `"}`:                 "not https",
		`{"url": "https://u:p@a.example/x", "sha256": "` + sum + `"}`:                      "password",
		`{"url": "https://a.example/x", "sha256": "ABC"}`:                                  "lower case hex",
		`{"url": "https://a.example/x", "key": "ed25519:AAAA"}`:                            "cannot be used",
		`{"url": "https://a.example/x", "key": "` + public + `", "token": "secret"}`:       "for policy",
		`{"url": "https://a.example/x", "sha256": "` + sum + `", "sha256": "` + sum + `"}`: "must be a file",
		`{"url": "https://a.example/x", "SHA256": "` + sum + `", "sha256": "` + sum + `"}`: "must be a file",
		`{"url": "https://a.example/x", "sha256": "` + sum + `", "more": "x"}`:             "must be a file",
		`{"sha256": "` + sum + `"}`:                                                        "has no url",
		`{"file": "a", "url": "https://a.example/x", "sha256": "` + sum + `"}`:             "not both",
	} {
		var i Include
		err := json.Unmarshal([]byte(text), &i)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseEnvelope(f *testing.F) {
	private, public := key(f)
	at := time.Unix(1e9, 0)
	good, err := json.Marshal(sign(f, private, "{}", 1, Validity{Expires: &at}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1,"version":1}`))
	f.Add([]byte(`{"version":1,"serial":9007199254740993}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ParseEnvelope(data)
		if err != nil {
			return
		}
		if e.Serial < 1 || e.Serial > MaxSerial || e.Version != 1 {
			t.Fatalf("taken: %+v", e)
		}
		if e.Verify([]byte("{}"), public) == nil {
			again, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			e2, err := ParseEnvelope(again)
			if err != nil || string(e2.signed()) != string(e.signed()) {
				t.Fatalf("what was verified is not what was read: %v", err)
			}
		}
	})
}
