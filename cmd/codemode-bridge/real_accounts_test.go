//go:build real

package main_test

import (
	"fmt"
	"strings"
	"testing"
)

// Somebody connects their account in a real browser, and disconnects it.
func TestRealAccounts(t *testing.T) {
	fake := newMirror(t)
	const signs = "ann-signs-in-with-this-0123456789"
	c := newCommandLine(t, fmt.Sprintf(`{
  "servers": {"mirror": {"url": %q, "auth": {"per": "principal"}}, "other": {"url": %q, "auth": {"per": "principal"}}},
  "approvals": {"listen": "127.0.0.1:0", "approvers": [%s]},
}`, fake.URL, fake.URL, approverJSON("ann", "approver", signs)))
	c.env = append(c.env, "CODEMODE_LOGINS=file")
	s := serving{file: c.file}
	s.start(t, c.program("", "serve", "--listen", "127.0.0.1:0"))
	w := (&pageBench{t: t, url: s.page}).tab(browser(t))
	w.open("/accounts")
	w.until(`document.querySelector("#token") !== null`)
	w.fill("#token", signs)
	w.press("#login button[type=submit]")
	w.until(`document.body.dataset.tab === "accounts" && document.querySelectorAll("[data-do=connect]").length === 2`)
	w.picture("accounts-none")
	w.click("connect")
	w.until(`document.body.dataset.tab === "accounts" && document.querySelector("[data-do=disconnect]") !== null`)
	if at := inPage[string](w, `location.href + document.referrer`); strings.Contains(at, "code") || strings.Contains(at, "state=") {
		t.Errorf("the code stays in the address: %s", at)
	}
	w.picture("accounts-connected")
	w.click("disconnect")
	w.until(`document.querySelectorAll("[data-do=connect]").length === 2`)
	w.picture("accounts-disconnected")
	w.open("/accounts/done?code=x&state=y")
	w.until(`document.querySelector("#connected-error")?.textContent.includes("not begun by ann")`)
	w.picture("accounts-refused")
}
