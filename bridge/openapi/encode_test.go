package openapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
)

// Any text, as a path parameter, is either refused or becomes one segment of the
// path, from which a server reads the same text.
func FuzzPathValue(f *testing.F) {
	for _, seed := range []string{"a", "..", "../x", "%2e%2e/", "a/b", "a?b#c", "\x00", "..;/", `..\`, "ü", "%", "%zz", ".", "...", "a;b=c", "%252e%252e%252f", "\u2025", "// ", "+"} {
		f.Add(seed)
	}
	a, err := newAPI("https://example.com/base", nil, 0)
	if err != nil {
		f.Fatal(err)
	}
	op := &operation{template: []piece{{literal: "/pets/"}, {parameter: "id"}, {literal: "/photos"}}}
	p := parameter{name: "id", in: openapi3.ParameterInPath, style: openapi3.SerializationSimple}
	f.Fuzz(func(t *testing.T, value string) {
		encoded, err := p.inPath(value)
		if err != nil {
			return
		}
		u, err := a.address(op.fill(func(string) string { return encoded }), "q=1")
		if err != nil {
			if len(encoded) < maxAddress/2 {
				t.Fatalf("%q was taken, and its address refused: %v", value, err)
			}
			return
		}
		type address struct {
			Host, Query, Fragment string
			Path                  []string
		}
		want := address{Host: "example.com", Query: "q=1", Path: []string{"", "base", "pets", encoded, "photos"}}
		got := address{u.Host, u.RawQuery, u.Fragment, strings.Split(u.EscapedPath(), "/")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q makes another address (-want +got):\n%s", value, diff)
		}
		if back, err := url.PathUnescape(got.Path[3]); err != nil || back != value {
			t.Fatalf("%q is read back as %q (%v)", value, back, err)
		}
		if clean := u.JoinPath().EscapedPath(); clean != u.EscapedPath() {
			t.Fatalf("%q makes a path that is cleaned to %s", value, clean)
		}
	})
}

// Any text, in a query, a form or a cookie, stays one value of one name.
func FuzzQueryValue(f *testing.F) {
	for _, seed := range []string{"a", "a&b=c", "a=b", "#", "+", " ", "%26", "\x00", "a;b", "ü", "a,b", "|"} {
		f.Add("name", seed, false)
		f.Add(seed, "value", true)
	}
	f.Fuzz(func(t *testing.T, name, value string, reserved bool) {
		if name == "" {
			return
		}
		p := parameter{name: name, in: openapi3.ParameterInQuery, style: openapi3.SerializationForm, explode: true}
		pairs := p.pairs(value)
		if len(pairs) != 1 {
			t.Fatalf("got %v", pairs)
		}
		back, err := url.ParseQuery(pairs[0].encoded(reserved))
		if reserved && strings.Contains(value, ";") {
			return // which package url takes for a separator, as was usual once
		}
		if err != nil || len(back) != 1 || len(back[name]) != 1 || back[name][0] != value {
			t.Fatalf("%q=%q is read back as %v (%v)", name, value, back, err)
		}
		req := &http.Request{URL: &url.URL{}, Header: http.Header{}}
		addCookie(req, name, value)
		cookies, err := http.ParseCookie(req.Header.Get("Cookie"))
		if err != nil || len(cookies) != 1 {
			t.Fatalf("%q=%q is the cookie %v (%v)", name, value, cookies, err)
		}
		if read, err := url.PathUnescape(cookies[0].Value); err != nil || read != value {
			t.Fatalf("%q=%q is the cookie %v", name, value, cookies)
		}
	})
}

// An operation makes a valid request of any arguments, or says why not.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"petId": "1", "body": {"file": {"text": "x"}}}`, `{"petId": {"a": [1]}}`, `[]`, `{"filter": {"a": {"b": [null]}}}`, `{"body": [[]]}`, `{"matrix": {"": ""}}`} {
		f.Add(seed)
	}
	a, err := newAPI("https://example.com/base", nil, 0)
	if err != nil {
		f.Fatal(err)
	}
	doc, err := a.load(f.Context(), "testdata/shop.yaml", 0)
	if err != nil {
		f.Fatal(err)
	}
	all, _, err := operations(f.Context(), doc, &a.credentials)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, op := range all {
			req, err := a.request(t.Context(), op, json.RawMessage(args))
			if err != nil {
				continue
			}
			if req.URL.Host != "example.com" || !strings.HasPrefix(req.URL.EscapedPath(), "/base/") || req.Method != op.method {
				t.Fatalf("%s(%s) makes %s %s", op.name, args, req.Method, req.URL)
			}
			if want := strings.Count(op.path, "/") + 1; strings.Count(req.URL.EscapedPath(), "/") != want {
				t.Fatalf("%s(%s) makes the path %s", op.name, args, req.URL.EscapedPath())
			}
		}
	})
}

// Values that stand side by side in the path are refused if together they are what
// neither may be.
func TestValuesSideBySide(t *testing.T) {
	op := &operation{template: []piece{{literal: "/pets/"}, {parameter: "a"}, {literal: ""}, {parameter: "b"}, {literal: "/x%2Fy"}}}
	p := parameter{in: openapi3.ParameterInPath, style: openapi3.SerializationSimple}
	for _, row := range []struct {
		a, b string
		fits bool
	}{
		{"a", "b", true}, {"100%", "25", true}, {"%2", "5", true},
		{"%2", "f", false}, {"%2", "Fadmin", false}, {"%5", "c", false}, {"%25", "2f", false}, {"%2", "e.", false}, {".", ".", false},
	} {
		values := map[string]string{}
		var err error
		for name, value := range map[string]string{"a": row.a, "b": row.b} {
			if values[name], err = p.inPath(value); err != nil {
				break
			}
		}
		if err == nil {
			err = op.checkWhole(op.fill(func(name string) string { return values[name] }))
		}
		if (err == nil) != row.fits {
			t.Errorf("%q and %q: %v", row.a, row.b, err)
		}
	}
}
