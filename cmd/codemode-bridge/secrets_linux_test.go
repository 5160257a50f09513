package main_test

// The commands about secrets, and init, with a keyring and a terminal.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codemode-bridge/bridge/secretstest"
)

func TestSecretsCommands(t *testing.T) {
	t.Parallel()
	service, err := secretstest.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	c := newCommandLine(t, `{"servers": {"web": {"url": "http://127.0.0.1:1/mcp", "headers": {"A": "Bearer ${keyring:WEB_TOKEN}", "B": "${keyring:GONE}"}}}}`)
	c.env = []string{"DBUS_SESSION_BUS_ADDRESS=" + service.Address()}

	term := onTerminal(t, c.program("", "secrets", "set", "WEB_TOKEN"), "")
	term.shows("the value of WEB_TOKEN (not shown): ")
	term.types("canary-typed\r")
	<-term.ended
	if all := term.all(); strings.Contains(all, "canary") || !strings.Contains(all, `names it as "${keyring:WEB_TOKEN}"`) {
		t.Errorf("the terminal has %q", all)
	}
	c.does("canary-piped\n", "secrets", "set", "OTHER")
	c.refuses("a value is never an argument", "", "secrets", "set", "OTHER", "canary")
	c.refuses("a value is never an argument", "", "secrets", "set", "OTHER=canary")
	c.refuses("cannot be the name of a secret", "", "secrets", "set", "a b")
	c.refuses("is empty: nothing was changed", "\n", "secrets", "set", "OTHER")
	if list := c.does("", "secrets", "list"); list != "NAME       STATE    USED BY\nGONE       missing  web\nOTHER      set      \nWEB_TOKEN  set      web\n" && list != "NAME       STATE    USED BY\nGONE       missing  web\nOTHER      set\nWEB_TOKEN  set      web\n" {
		t.Errorf("the list is\n%s", list)
	}
	if list := c.does("", "secrets", "list", "--json"); !strings.Contains(list, `{"name":"OTHER","there":true,"used_by":[]}`) || strings.Contains(list, "canary") {
		t.Errorf("the list is %s", list)
	}
	if out, _, code := c.run("", "check", "--secrets"); code != 3 || !strings.Contains(out, `"B": the keyring has no secret "GONE" (hint: codemode-bridge secrets set GONE)`) || strings.Count(out, "\n") > 1 {
		t.Errorf("check: exit code %d, %s", code, out)
	}
	c.does("", "secrets", "remove", "OTHER")
	c.refuses(`the keyring has no secret "OTHER"`, "", "secrets", "remove", "OTHER")
	if _, said, code := c.run("", "secrets", "remove", "WEB_TOKEN"); code != 0 || !strings.Contains(said, "the configuration still names it: web") {
		t.Errorf("remove: exit code %d, %s", code, said)
	}
	service.Lock(true)
	for _, args := range [][]string{{"set", "A"}, {"list"}, {"remove", "A"}} {
		c.refuses(`keep the secret in a file that only you can read: "${file:PATH}"`, "canary\n", append([]string{"secrets"}, args...)...)
	}
	for name, text := range files(t, c.home) {
		if strings.Contains(text, "canary") {
			t.Errorf("%s has a secret in it", name)
		}
	}
}

// Init moves a secret that a client has in its file where the person says so, and nowhere
// else; a value is not shown.
func TestInitMovesSecrets(t *testing.T) {
	t.Parallel()
	for name, keyring := range map[string]bool{"keyring": true, "files": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service, err := secretstest.New(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			service.Lock(!keyring)
			effects := filepath.Join(t.TempDir(), "effects")
			c := newCommandLine(t, "{}")
			c.env = []string{"DBUS_SESSION_BUS_ADDRESS=" + service.Address()}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			privateFile(t, filepath.Join(c.home, ".mcp.json"), `{"mcpServers": {"fake": {"command": "`+self+`", "args": ["--api-key", "canary-arg-0123456789"],
				"env": {"`+effectsVariable+`": "`+effects+`", "FAKE_TOKEN": "canary-env-0123456789", "OTHER_TOKEN": "canary-kept-0123456789"}}}}`)
			cmd := c.program("", "init", "--force", "--from", ".mcp.json")
			cmd.Dir = c.home
			term := onTerminal(t, cmd, "")
			term.shows("and write ~/config.json")
			term.types("y\r")
			for _, one := range []struct{ question, answer string }{{"env FAKE_TOKEN of fake (21", "y"}, {"env OTHER_TOKEN of fake (22", "n"}, {"args[1] of fake (21", "y"}} {
				term.shows(one.question)
				term.types(one.answer + "\r")
			}
			<-term.ended
			text, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			wants := []string{`"FAKE_TOKEN":"${keyring:FAKE_TOKEN}"`, `"args": ["--api-key","${keyring:FAKE_API_KEY}"]`, "canary-kept-0123456789"}
			if !keyring {
				for i, want := range wants {
					wants[i] = strings.ReplaceAll(want, "${keyring:", "${file:secrets/")
				}
			}
			for _, want := range wants {
				if !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(string(text), `": "`, `":"`), `", "`, `","`), want) {
					t.Errorf("the configuration has no %s\n%s", want, text)
				}
			}
			shown := term.all()
			if strings.Contains(string(text), "canary-env") || strings.Contains(string(text), "canary-arg") || strings.Contains(shown, "canary") || term.process.ProcessState.ExitCode() != 0 {
				t.Errorf("exit code %d\n%s\n%s", term.process.ProcessState.ExitCode(), text, shown)
			}
			if !keyring {
				info, err := os.Stat(filepath.Join(c.home, "secrets", "FAKE_TOKEN"))
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%v, %v", info, err)
				}
			}
			// The server gets what it got before.
			privateFile(t, c.file, strings.Replace(string(text), `{ "extends": "builtin:coding@1" }`, `{ "allowlist": ["*"] }`, 1))
			if got := c.does("", "eval", `return String(await codemode.fake__write({}))`); !strings.Contains(got, "token canary-env-0123456789") || !strings.Contains(got, "canary-arg-0123456789") {
				t.Errorf("the server had %s", got)
			}
			if out, _, _ := c.run("", "doctor"); !strings.Contains(out, "env OTHER_TOKEN looks like a secret, and stands in the configuration as it is") || strings.Contains(out, "canary") {
				t.Errorf("doctor says\n%s", out)
			}
		})
	}
}

// Who adds a server by the JSON of a document is asked before that runs a command, and is
// shown which.
func TestJSONOfADocumentRunsNothingUnasked(t *testing.T) {
	t.Parallel()
	c := newCommandLine(t, `{"servers": {}}`)
	ran := filepath.Join(c.home, "ran") // in the folder of the configuration
	for _, answer := range []string{"n", "y"} {
		term := onTerminal(t, c.program("", "servers", "add", "web", `{"url": "http://127.0.0.1:1/mcp", "headers": {"A": "${exec:mkdir ran}"}}`), "")
		term.shows("${exec:mkdir ran} (runs a")
		term.shows("add it? [y/N]")
		term.types(answer + "\r")
		<-term.ended
		_, err := os.Stat(ran)
		if text, config := os.ReadFile(c.file); config != nil || (err == nil) != (answer == "y") || strings.Contains(string(text), "exec") != (answer == "y") {
			t.Errorf("after %s: %v, the configuration is %s, %v", answer, err, text, config)
		}
	}
}
