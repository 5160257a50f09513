//go:build real && linux

package main_test

// The pictures of the README show the real programs: a client's script asks to pay money
// back, and approvals watch and the approval page show the request.
//
// `make pictures` draws them into docs/images. The test draws them again and compares the
// words in them, not the pixels.

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const picturedConfig = `{
  "servers": {"shop": {"command": "shop", "cwd": "."}},
  "approvals": {"listen": "127.0.0.1:0"},
  "evaluation": {"defaultProfile": "supervised", "profiles": {"supervised": {
    "default": "risk", "elicitationFallback": "queue", "timeout": "10m",
    "rules": [{"name": "money", "tools": ["shop__refund_order"], "action": "ask", "reason": "it cannot be called back"}],
  }}},
}
`

const picturedScript = `const {orders} = json(await codemode.shop__list_orders({status: "shipped"}));
const desk = orders.find(o => o.sku === "desk");
await codemode.shop__refund_order({id: desk.id, cents: desk.cents, reason: "arrived broken"});
await codemode.shop__send_mail({to: "cyd@example.org", subject: "Your desk", body: "We have paid for the " + desk.sku + "."});
return desk.id;`

// sameWords removes from a text what differs each time: times, ids, ports, and the padding
// of their columns.
func sameWords(text string) string {
	for _, part := range []struct{ pattern, with string }{
		{`\b(on )?(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{1,2} [A-Z][a-z]{2}\b`, ""}, {`\b\d{1,2}/\d{1,2}/\d{4}, `, ""},
		{`\b\d{1,2}:\d\d(:\d\d)?([ \x{a0}\x{202f}][AP]M)?\b`, "TIME"}, {`\b\d+m\d\ds\b`, "TIME"}, {`\b\d+ (s|ms|min|seconds?)\b`, "TIME"}, {`\br[a-z0-9]{12}\b`, "RUN"}, {`\bq[a-z0-9]{6,}\b`, "REQUEST"},
		{`127\.0\.0\.1:\d+`, "ADDRESS"}, {`\b[0-9a-f]{12,64}\b…?`, "DIGEST"}, {`\b\d{4}-\d\d-\d\d\b`, "DAY"}, {`[ \t]+`, " "}, {` *\n+ *`, "\n"},
	} {
		text = regexp.MustCompile(part.pattern).ReplaceAllString(text, part.with)
	}
	return strings.TrimSpace(text)
}

// kept writes what was drawn to a file with -update; else it compares the words in both.
func kept(t *testing.T, name, drawn string, words func(string) string) {
	t.Helper()
	file := filepath.Join("..", "..", "docs", "images", name)
	if *update {
		if err := os.WriteFile(file, []byte(drawn), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if now, before := sameWords(words(drawn)), sameWords(words(string(was))); now != before {
		t.Errorf("docs/images/%s says\n%s\nand the real thing says (make pictures draws it)\n%s", name, before, now)
	}
}

func TestRealPictures(t *testing.T) {
	c := newCommandLine(t, picturedConfig)
	c.env = append(c.env, "PATH="+c.home+string(filepath.ListSeparator)+os.Getenv("PATH"))
	build := exec.Command("go", "build", "-o", c.home+string(filepath.Separator), "./docs/examples/shop")
	build.Dir = moduleRoot(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the shop: %v\n%s", err, out)
	}
	ann := strings.TrimSpace(c.does("", "approvers", "add", "ann", "--role", "admin"))

	var bridge serving
	bridge.start(t, c.program("", "serve", "--listen", "127.0.0.1:0"))
	client, err := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: bridge.endpoint, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answered := make(chan string, 1)
	go func() {
		result, err := eval(t.Context(), client, picturedScript)
		if err != nil {
			result = err.Error()
		}
		answered <- result
	}()

	watch := c.signsIn(ann, "")
	watch.shows(title(1))
	watch.types("v") // view all of the arguments
	watch.shows("arrived broken")
	var drawn *grid
	defer func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", drawn.text())
		}
	}()
	eventually(t, "the screen is not whole", func() bool {
		drawn = newGrid(80, 24)
		drawn.write(watch.all())
		return strings.Contains(drawn.text(), "means no") && strings.Contains(drawn.text(), "q quit")
	})
	if drawn.unknown != nil {
		t.Errorf("the terminal was sent what the picture cannot show: %q", drawn.unknown)
	}
	kept(t, "question.svg", drawn.svg("codemode-bridge approvals watch: a script asks to pay money back"), svgText)

	w := (&pageBench{t: t, url: bridge.page}).tab(browser(t))
	w.do(chromedp.EmulateViewport(1100, 820))
	w.open("/")
	w.send("#token", ann+kb.Enter)
	w.until(`document.querySelector("#link.on") !== null && document.querySelector("#detail article") !== null && document.body.innerText.includes("arrived broken")`)
	w.ready()
	kept(t, "page.txt", inPage[string](w, `document.body.innerText`)+"\n", func(s string) string { return s })
	if *update {
		png, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join("..", "..", "docs", "images", "page.png"), png, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	watch.types("d") // deny, so that no request is left open
	if got := <-answered; !strings.Contains(got, "declined") && !strings.Contains(got, "said no") {
		t.Errorf("the script returned %s", got)
	}
	watch.leaves()
}
