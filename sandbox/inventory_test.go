package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"codemode-bridge/sandbox/racing"
)

// walkScript lists every property that can be reached from the global object
// and from the syntax, without running a getter: path, kind, and whether it can
// be changed. FEATURES, which does not run, makes the worker install all that it
// installs for scripts that mention it.
const walkScript = `
const seen = new Map(), lines = [];
const shown = (key) => typeof key === "symbol" ? "[" + String(key) + "]" : "." + key;
const kind = (v) => v === null ? "null" : typeof v;
function walk(path, value) {
  if (value === null || typeof value !== "object" && typeof value !== "function") return;
  if (seen.has(value)) return;
  seen.set(value, path);
  const prototype = Object.getPrototypeOf(value);
  if (prototype === null) lines.push(path + " -> null");
  for (const key of Reflect.ownKeys(value)) {
    const d = Reflect.getOwnPropertyDescriptor(value, key);
    const how = (d.writable || d.set ? "w" : "-") + (d.enumerable ? "e" : "-") + (d.configurable ? "c" : "-");
    const at = path + shown(key);
    if (d.get || d.set) {
      lines.push(at + " " + how + " accessor");
      walk(at + "<get>", d.get);
      walk(at + "<set>", d.set);
      continue;
    }
    const same = seen.get(d.value);
    lines.push(at + " " + how + " " + kind(d.value) + (same ? " = " + same : ""));
    walk(at, d.value);
  }
  walk(path + ".__proto__", prototype);
}
walk("globalThis", globalThis);
walk("arrow", () => 0);
walk("async", async () => 0);
walk("generator", function* () {});
walk("iterator of array", [][Symbol.iterator]());
walk("iterator of text", ""[Symbol.iterator]());
walk("iterator of map", new Map().entries());
walk("iterator of set", new Set().entries());
walk("iterator of matches", "".matchAll(/a/g));
`

// featureWords mention everything that is installed on demand.
const featureWords = `
function FEATURES() {
  console; json; emit; setTimeout; queueMicrotask; structuredClone; URL; TextEncoder; atob; crypto; performance;
  AbortController; EventTarget; DOMException; Promise.withResolvers; Array.fromAsync; Object.groupBy; Symbol.asyncIterator;
  "isWellFormed"; "RegExp.escape"; [].union; Iterator; "x".matchAll; (1).toLocaleString; Intl; BigInt; ToolError; ToolCallDeniedError;
  ArgumentError; UnknownOutcomeError; DivergedError; LimitError;
}
`

// TestInventory holds what a script can reach to a stored list: nothing comes
// in, goes, or becomes changeable unnoticed. go test -run Inventory -update
// writes the list; look at what changed.
func TestInventory(t *testing.T) {
	s := workers(t, Options{}).Session()
	for _, row := range []struct{ file, source string }{
		{"testdata/inventory-bare.txt", walkScript + `return lines.join("\n") + "\n";`},
		{"testdata/inventory-all.txt", walkScript + featureWords + `return lines.join("\n") + "\n";`},
	} {
		r, err := eval(t, s, row.source, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := json.Unmarshal(r.Value, &got); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(row.file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(row.file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not what a script finds (-update writes it):\n%s", row.file, difference(string(want), got))
		}
	}
}

// difference lists the lines that only one of two texts has.
func difference(want, got string) string {
	var b strings.Builder
	only := func(mark, a, other string) {
		has := make(map[string]bool)
		for line := range strings.Lines(other) {
			has[line] = true
		}
		n := 0
		for line := range strings.Lines(a) {
			if !has[line] && n < 40 {
				b.WriteString(mark + line)
				n++
			}
		}
	}
	only("- ", want, got)
	only("+ ", got, want)
	return b.String()
}

// marks are what a run may leave behind, if anything can be left.
var marks = []string{
	`globalThis["left" + N] = 1; var left = 1;`,
	`Object.defineProperty(globalThis, "hidden", { value: N });`,
	`Object.prototype["p" + N] = N;`,
	`Array.prototype.map = Array.prototype.push = null;`,
	`Array.prototype[N] = "hole";`,
	`Promise.prototype.then = () => N;`,
	`JSON.parse = JSON.stringify = null;`,
	`Math.random = () => N; Math.PI2 = N;`,
	`Date.now = () => N; Date = null;`,
	`String.prototype.split = null; Symbol.for("left" + N).description;`,
	`Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(globalThis);`,
	`delete globalThis.Map; delete Array.prototype.filter;`,
	`Object.setPrototypeOf(Array.prototype, null);`,
	`Object.setPrototypeOf(Object.getPrototypeOf(async () => 0), { left: N });`,
	`RegExp.prototype.exec = () => null; /a/g.lastIndex = N; RegExp["$1"];`,
	`Error.prototype.name = "N" + N; Error.stackTraceLimit = N;`,
	`try { await codemode.echo__denied({}) } catch (e) { e.constructor.prototype.left = N; Object.getPrototypeOf(e.constructor).left = N; }`,
	`Object.getPrototypeOf((await codemode.echo__say({ a: 1 }))).left = N;`,
	`setTimeout(() => { globalThis.late = N }, 1e6); setInterval(() => { globalThis.late = N }, 1e6);`,
	`codemode.echo__wait({ N }); codemode.echo__say({ N }).then(() => { globalThis.late = N });`,
	`console.count("c"); console.group("g"); console.time("t"); console.log = null;`,
	`codemode.echo__say.left = N; codemode.raw.left = N; codemode.echo__say.__proto__.left = N;`,
	`URL.prototype.left = N; TextEncoder.prototype.encode = null; structuredClone.left = N;`,
	`crypto.getRandomValues(new Uint8Array(N)); for (let i = 0; i < N; i++) Math.random();`,
	`Object.getPrototypeOf([][Symbol.iterator]()).next = () => ({ done: true });`,
	`Object.getPrototypeOf(function* () {}).prototype.left = N; Iterator.prototype.left = N;`,
	`Function.prototype.call = Function.prototype.apply = Function.prototype.bind = null;`,
	`input = N; this.input = N; globalThis.codemode2 = codemode;`,
	`throw new Error("left " + N);`,
	`Promise.reject(new Error("left")); queueMicrotask(() => { throw N });`,
}

// glance looks at all that marks touch. It costs a fraction of walkScript.
const glance = `
const timer = setTimeout(() => 1, 1e6);
clearTimeout(timer);
console.count("c");
console.log(typeof left, typeof late, typeof hidden, typeof codemode2, /a/g.lastIndex, Symbol.for("left").description);
const denied = await codemode.echo__denied({}).catch((e) => e);
const own = (o) => Reflect.ownKeys(o).map(String).join();
const I = Object.getPrototypeOf([][Symbol.iterator]());
return [timer, Math.random(), Date.now(), [3, 1, 2].sort().map(String), typeof input, String(new Error("x")), [...[1, 2]],
  own(globalThis), [Object, Array, Promise, String, RegExp, Function, Error, URL, TextEncoder].map((c) => own(c) + own(c.prototype)),
  [Math, JSON, console, structuredClone, codemode.raw, denied.constructor.prototype, Object.getPrototypeOf(denied.constructor), I].map(own),
  Object.isFrozen(globalThis), Object.getPrototypeOf(Array.prototype) === Object.prototype, /b/.exec("abc").index,
  own(Object.getPrototypeOf(async () => 0)), own(Object.getPrototypeOf(function* () {}).prototype), own(Iterator.prototype)];`

// TestRunsShareNothing runs pairs of scripts in one worker: the first leaves
// behind what it can, and the second finds the world as the very first run did.
func TestRunsShareNothing(t *testing.T) {
	pairs := 1000
	if testing.Short() || racing.On {
		pairs = 50
	}
	pool := workers(t, Options{})
	look := func(s *Session, source string) string {
		t.Helper()
		r, err := s.Run(t.Context(), Script{Source: source, Names: tools, Start: testStart}, new(still))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s %v", r.Value, r.Logs)
	}
	whole := walkScript + featureWords + "return lines"
	want := map[string]string{glance: look(pool.Session(), glance), whole: look(pool.Session(), whole)}

	random := rand.New(rand.NewPCG(1, 2))
	s := pool.Session()
	look(s, glance)
	before := pool.Status().Started
	for i := range pairs {
		first, second := "", glance
		for range 1 + random.IntN(3) {
			first += strings.ReplaceAll(marks[random.IntN(len(marks))], "N", fmt.Sprint(2+random.IntN(9))) + "\n"
		}
		if i%50 == 0 {
			second = whole
		}
		if _, err := s.Run(t.Context(), Script{Source: "{" + first + "}", Names: tools}, new(victim)); err != nil && !errors.As(err, new(*ScriptError)) {
			t.Fatalf("%s\n%v", first, err)
		}
		if got := look(s, second); got != want[second] {
			t.Fatalf("pair %d: after\n%s\na run finds %s\nwant %s", i, first, got, want[second])
		}
	}
	// One for the session's own, and those that the pool keeps ready.
	if n := pool.Status().Started - before; n > 3 {
		t.Errorf("%d workers were started: the pairs had not one", n)
	}
}

// still is a victim whose answers take no time on the script's clock.
type still struct{ victim }

func (h *still) Call(ctx context.Context, c Call, settle func(Reply)) {
	h.victim.Call(ctx, c, func(r Reply) { r.Time = testStart; settle(r) })
}
