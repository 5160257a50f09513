package setup

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"codemode-bridge/bridge/canon"
	"codemode-bridge/bridge/jsonc"
	"codemode-bridge/profiles/known"
)

// What is known of a server by the way it is started, and the person's acceptance of
// it: the version that was verified is pinned, and "known" says which it is. All of it
// goes by the server's text, whichever way it came.

// Known says in a few words what is known of a server in the form of the
// configuration. Says is what its "known" says once the person has accepted that; it is
// empty if that cannot be accepted, or has been.
func Known(text jsonc.Text) (words, says string) {
	r, _ := recognize(text)
	says = acceptable(r)
	switch {
	case r.Said != "":
		return "known as " + r.Said, ""
	case says != "":
		return "known as " + says, says
	case r.Verified:
		return fmt.Sprintf("known as %s as of %s and pinned to another version, so its calls are guessed", r.Server.Name, r.Server.Verified), ""
	case r.Server.Name != "":
		return "known as " + r.Server.Name + " from its documentation alone, so its calls are guessed or judged more strictly", ""
	case r.Why != "":
		return canon.Escape(r.Why) + ", so its calls are guessed", ""
	}
	return "not known, so its calls are guessed", ""
}

// acceptable returns what "known" says of a server once it is accepted; empty if it
// cannot be. Of a server that is pinned to another version than the verified one, nobody
// knows what that version does.
func acceptable(r known.Recognition) string {
	if r.Said != "" || !r.Verified || r.Version != "" && r.Version != r.Server.Verified {
		return ""
	}
	return r.Server.Name + "@" + r.Server.Verified
}

// Accept returns the text of a server with what is known of it accepted. It is as it was
// if that cannot be accepted.
func Accept(text jsonc.Text) (jsonc.Text, error) {
	next, _, err := acceptIn(text, "", text)
	return next, err
}

// AcceptIn returns the text of a configuration with what is known of the server at a
// JSON pointer accepted. Words say what is known; says is empty if that cannot be
// accepted: then words say why, and the text is as it was.
func AcceptIn(text []byte, at string) (next []byte, words, says string, err error) {
	server, err := jsonc.Section(text, at)
	if err != nil {
		return nil, "", "", err
	}
	words, _ = Known(server)
	next, says, err = acceptIn(text, at, server)
	r, _ := recognize(server)
	switch {
	case isBuiltin(server):
		words = "it is part of the bridge, which knows what its calls do"
	case says == "" && r.Said == "" && r.Verified:
		words += fmt.Sprintf("; to accept it, start version %s", r.Server.Verified)
	}
	return next, words, says, err
}

// isBuiltin reports whether a server is part of the bridge.
func isBuiltin(text jsonc.Text) bool {
	plain, err := text.MarshalJSON()
	var s struct {
		Builtin string `json:"builtin"`
	}
	return err == nil && json.Unmarshal(plain, &s) == nil && s.Builtin != ""
}

func acceptIn(text []byte, at string, server jsonc.Text) (next []byte, says string, err error) {
	r, args := recognize(server)
	if says = acceptable(r); says == "" {
		return text, "", nil
	}
	for i, arg := range pinned(r, args) {
		if arg == args[i] {
			continue
		}
		if text, err = jsonc.Replace(text, at+"/args/"+strconv.Itoa(i), jsonc.Text(flatJSON(arg))); err != nil {
			return nil, "", err
		}
	}
	next, err = jsonc.Insert(text, at+"/known", says)
	return next, says, err
}

// recognize returns what is known of a server, and its arguments as they are written.
// Nothing is known of a text that is no server.
func recognize(text jsonc.Text) (known.Recognition, []string) {
	plain, err := text.MarshalJSON()
	var s struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
		PassEnv []string          `json:"passEnv"`
		URL     string            `json:"url"`
		OpenAPI string            `json:"openapi"`
		Known   string            `json:"known"`
		Confine json.RawMessage   `json:"confine"`
	}
	if err != nil || json.Unmarshal(plain, &s) != nil || s.OpenAPI != "" {
		return known.Recognition{}, nil
	}
	var box struct {
		Require bool `json:"require"`
	}
	boxed := len(s.Confine) > 0 && json.Unmarshal(s.Confine, &box) == nil && box.Require
	return known.Recognize(s.Known, known.Started{
		Command: s.Command, Args: s.Args, URL: s.URL, Boxed: boxed,
		Env: slices.Concat(slices.Sorted(maps.Keys(s.Env)), s.PassEnv),
	}), s.Args
}

// pinned returns the arguments of a known server with the verified version, if they name
// none.
func pinned(r known.Recognition, args []string) []string {
	spec := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }) // the package: see known.Identify
	if !r.Verified || r.Version != "" || spec < 0 {
		return args
	}
	args = slices.Clone(args)
	args[spec] = strings.TrimSuffix(args[spec], "@latest") + "@" + r.Server.Verified
	return args
}

// Acceptable returns those of which the person can accept what is known, and how that
// is asked; empty if there are none.
func Acceptable(all []*Server) (some []*Server, question string) {
	var names []string
	for _, s := range all {
		if _, says := Known(s.written()); says != "" && !s.There {
			some, names = append(some, s), append(names, s.As)
		}
	}
	if len(some) > 0 {
		question = AcceptQuestion(names...)
	}
	return some, question
}

// AcceptQuestion asks whether the person accepts what is known of servers.
func AcceptQuestion(names ...string) string {
	return fmt.Sprintf("accept what the bridge knows of %s? Their calls are then judged by what they do, and these versions are pinned (codemode-bridge servers known NAME shows what is known)", strings.Join(names, ", "))
}
