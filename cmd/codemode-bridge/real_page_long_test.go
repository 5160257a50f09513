//go:build real

package main_test

// A page that stays open while its bridge restarts, and longer than anybody stays signed
// in.

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"codemode-bridge/bridge/admin"
)

// The bridge dies while the page is open: the page says that it is not connected and
// decides nothing. Another bridge starts at the same address: the page asks to sign in
// again, and the request is still open.
func TestRealPageRestart(t *testing.T) {
	pid := os.Getpid()
	address := fmt.Sprintf("127.%d.%d.%d:7421", 1+pid>>16, pid>>8&255, pid&255) // no other test's
	bridge := serves(t, fmt.Sprintf(`{
  "servers": {"utils": {"type": "builtin", "builtin": "utils"}},
  "evaluation": {"defaultProfile": "p", "profiles": {"p": {"asklist": ["utils__*"]}}},
  "approvals": {"listen": %q, "approvers": [%s]},
}
`, address, approverJSON("ann", "admin", "ann-token")))
	const code = `return await codemode.utils__hash({text: "x"})`
	run := bridge.starts("ann-token", code)
	first := func(run string) (id string) {
		t.Helper()
		eventually(t, "run "+run+" asks nothing", func() bool {
			for _, q := range bridge.openTo("ann-token") {
				if q.Run == run {
					id = q.ID
				}
			}
			return id != ""
		})
		return id
	}
	asked := first(run)
	w := (&pageBench{t: t, url: bridge.page}).tab(browser(t)).signIn("ann")
	w.until(`document.querySelector("#detail article")?.dataset.id === "` + asked + `"`)
	w.ready()

	bridge.kill()
	w.until(`document.querySelector("#banner").textContent.includes("Not connected")`)
	w.picture("not-connected")
	w.key("a") // has no effect, not even later
	bridge.start()
	w.until(`document.querySelector("#banner").textContent.includes("signed out")`)
	w.picture("signed-out")
	w.key("a")
	if open := bridge.openTo("ann-token"); len(open) != 1 || open[0].ID != asked {
		t.Errorf("after the start %+v is asked", open)
	}

	w.signIn("ann")
	w.press(`.row[data-id="` + asked + `"] .open`)
	w.until(`document.querySelector("#detail article")?.dataset.id === "` + asked + `"`)
	again := bridge.starts("ann-token", code)
	asked = first(again)
	w.until(`document.querySelector('.row[data-id="` + asked + `"]') !== null`)
	w.press(`.row[data-id="` + asked + `"] .open`)
	w.until(`document.querySelector("#detail article")?.dataset.id === "` + asked + `"`)
	w.ready()
	w.click("approve")
	w.until(`document.querySelector("#said").textContent.includes("approved by ann")`)
}

// The connection is cut while the bridge runs on: the page reconnects by itself, and shows
// what was asked meanwhile.
func TestRealPageLineCut(t *testing.T) {
	b := newPageBench(t)
	w := b.tab(browser(t)).signIn("ada")
	b.cut.Store(true)
	b.server.CloseClientConnections()
	w.until(`document.querySelector("#banner").textContent.includes("Not connected")`)
	e, verdicts := b.ask(pageQuestion{tool: "send", args: []string{plainMail}})
	b.cut.Store(false)
	w.until(`document.querySelector("#banner").hidden && document.querySelector("#link.on") !== null`)
	w.shows(e)
	w.ready()
	w.key("a")
	w.after("approved")
	if v := b.verdict(verdicts); !v.Approve || v.By != "ada" {
		t.Errorf("the verdict is %+v", v)
	}
}

// The page stays open until the session has expired: it says so by itself, and decides
// nothing.
func TestRealPageOvernight(t *testing.T) {
	t.Parallel()
	b := newPageBench(t, func(o *admin.Options) { o.Limits.SessionTime = 10 * time.Second })
	w := b.tab(browser(t)).signIn("ada")
	e, _ := b.ask(pageQuestion{tool: "send", args: []string{plainMail}})
	w.until(`document.querySelector("#banner").textContent.includes("signed out")`)
	w.picture("overnight")
	w.key("ad")
	if open := b.open(); len(open) != 1 || open[0].ID != e.ID {
		t.Error("somebody who is out has decided")
	}
	if r, err := http.Get(b.url + "/api/pending"); err != nil || r.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v, %v", r, err)
	}
}
