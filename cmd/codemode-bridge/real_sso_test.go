//go:build real

package main_test

import (
	"strings"
	"testing"

	"codemode-bridge/bridge/ssotest"

	"github.com/chromedp/chromedp"
)

// Single sign-on with the real binary in a real browser: to the provider, back, and to
// where one wanted to go.
func TestRealSingleSignOn(t *testing.T) {
	there := ssotest.New(t)
	b := serves(t, signOnConfig(there))
	parent := browser(t)
	w := (&pageBench{t: t, url: b.page}).tab(parent)
	w.open("/grants")
	w.until(`document.querySelector("[data-do=sign-on]") !== null`)
	w.picture("sign-on")
	w.click("sign-on")
	w.until(`document.body.dataset.tab === "grants" && document.querySelector(".who")?.innerText.includes("ann (admin)")`)
	if at := inPage[string](w, `location.href + document.referrer + document.cookie`); at != b.page+"/grants" {
		t.Errorf("after signing in the page knows %q", at)
	}
	w.click("logout")
	w.until(`location.pathname === "/login"`)

	// Started under another name of this machine, it comes back to the right one.
	w.do(chromedp.Navigate(strings.Replace(b.page, "127.0.0.1", "localhost", 1) + "/"))
	w.until(`document.querySelector("[data-do=sign-on]") !== null`)
	w.click("sign-on")
	w.until(`document.body.dataset.tab === "pending" && location.hostname === "127.0.0.1"`)

	there.Set(func() { there.Claims["email"] = "mallory@example.com" })
	stranger := (&pageBench{t: t, url: b.page}).tab(parent)
	stranger.open("/")
	stranger.until(`document.querySelector("[data-do=sign-on]") !== null`)
	stranger.click("sign-on")
	stranger.until(`document.querySelector("#login-error")?.textContent.includes("mallory@example.com is no approver here")`)
	stranger.picture("sign-on-refused")
	if at := inPage[string](stranger, `location.href`); at != b.page+"/login" {
		t.Errorf("the code stays in the address: %s", at)
	}
}
