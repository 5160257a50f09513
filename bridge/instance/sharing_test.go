package instance

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestEditsThatClientsDoNotShare(t *testing.T) {
	s := Sharing{Variables: []string{"TOKEN"}, Passed: []string{"LANGUAGE"}}
	for _, row := range []struct {
		more Sharing
		want string // part of the error; empty if it is covered
	}{
		{s, ""},
		{Sharing{}, ""},
		{Sharing{Variables: []string{"HTTP_PROXY", "TOKEN"}}, ""},
		{Sharing{Variables: []string{"SECRET"}}, "needs the variable SECRET"},
		{Sharing{Passed: []string{"LANGUAGE", "SECRET"}}, "passes the variable SECRET"},
		{Sharing{Folder: true}, "in the folder of its window"},
	} {
		err := s.Covers(row.more)
		if (err != nil) != (row.want != "") || err != nil && !(errors.Is(err, ErrNotShared) && strings.Contains(err.Error(), row.want)) {
			t.Errorf("%+v: %v, want %q", row.more, err, row.want)
		}
	}
	s.Folder = true
	if err := s.Covers(Sharing{Folder: true}); err != nil {
		t.Error(err)
	}
}

func TestIdentity(t *testing.T) {
	of := func(s Sharing, env map[string]string, children ...string) []string {
		t.Helper()
		identity, err := s.Identity(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, children)
		if err != nil {
			t.Fatal(err)
		}
		return identity
	}
	s := Sharing{Variables: []string{"TOKEN"}}
	usual := of(s, map[string]string{"TOKEN": "a"}, "PATH=/bin", "LANG=en")
	same := func(what string, other []string, want bool) {
		t.Helper()
		if slices.Equal(usual, other) != want {
			t.Errorf("%s: the same %t, want %t", what, !want, want)
		}
	}
	same("another order and terminal", of(s, map[string]string{"TOKEN": "a"}, "LANG=en", "PATH=/bin", "TERM=dumb"), true)
	same("a variable that nothing reads", of(s, map[string]string{"TOKEN": "a", "X": "1"}, "LANG=en", "PATH=/bin"), true)
	same("another value", of(s, map[string]string{"TOKEN": "b"}, "LANG=en", "PATH=/bin"), false)
	same("unset", of(s, nil, "LANG=en", "PATH=/bin"), false)
	same("a proxy", of(s, map[string]string{"TOKEN": "a", "HTTP_PROXY": "http://p"}, "LANG=en", "PATH=/bin"), false)
	same("the environment of children", of(s, map[string]string{"TOKEN": "a"}, "LANG=tlh", "PATH=/bin"), false)
	s.Folder = true
	same("the folder", of(s, map[string]string{"TOKEN": "a"}, "LANG=en", "PATH=/bin"), false)
}
