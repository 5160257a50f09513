package worker

import (
	"go/build"
	"os/exec"
	"strings"
	"testing"

	"codemode-bridge/sandbox/wire"
)

// TestImports keeps rule 2 of the house: the worker has no way to the network
// or to other programs in its own code, and knows nothing of the bridge.
//
// esbuild's api package links net and net/http for its development server,
// which nothing here calls; it is the only package that may bring them. And
// sandbox/confine alone brings os/exec, for the bridge's half of it: a worker uses the
// other half, which gives up starting programs.
func TestImports(t *testing.T) {
	p, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range p.Imports {
		if path == "net" || strings.HasPrefix(path, "net/") || path == "os/exec" || strings.HasPrefix(path, "codemode-bridge/bridge") {
			t.Errorf("imports %s", path)
		}
	}
	out, err := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{.Standard}} {{join .Imports ","}}`, ".").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.SplitN(line, " ", 3)
		path, standard, imports := fields[0], fields[1] == "true", ","+fields[2]+","
		if strings.HasPrefix(path, "codemode-bridge/bridge") || path == "codemode-bridge/sandbox" {
			t.Errorf("depends on %s", path)
		}
		if standard || strings.HasPrefix(path, "github.com/evanw/esbuild/") {
			continue
		}
		for _, bad := range []string{",net,", ",net/http,", ",os/exec,"} {
			if strings.Contains(imports, bad) && !(bad == ",os/exec," && path == "codemode-bridge/sandbox/confine") {
				t.Errorf("%s imports %s", path, strings.Trim(bad, ","))
			}
		}
	}
}

// TestRepeats holds that the same script with the same seed and answers sends
// the same frames, and that another seed gives other random values.
func TestRepeats(t *testing.T) {
	script := `
		const out = [Math.random(), crypto.randomUUID(), Date.now(), new Date().toString()];
		const o = {}; for (const k of "zyxwvutsrq") o[k] = k;
		const r = await Promise.all([1, 2, 3].map(n => codemode.time__now({ n, o })));
		out.push(r, Object.keys(codemode), Date.now(), performance.now(), [..."hello"].sort(() => Math.random() - 0.5));
		console.log(out, new Map(Object.entries(o)));
		return out;`
	run := func(seed byte) string {
		p := start(t)
		p.sendNames()
		return p.run(scriptedRun{script: script, seed: seed})
	}
	first := run(1)
	for range 20 {
		if again := run(1); again != first {
			t.Fatalf("first:\n%s\nagain:\n%s", first, again)
		}
	}
	if run(2) == first {
		t.Error("another seed gives the same run")
	}
}

// TestRunsShareNothing holds that a run leaves nothing behind for the next one
// in the same worker.
func TestRunsShareNothing(t *testing.T) {
	p := start(t)
	p.sendNames()
	p.run(scriptedRun{script: `
		globalThis.left = 1; Object.prototype.left = 2; Array.prototype.map = null; JSON.parse = null;
		ToolError.prototype.left = 3; Promise.prototype.left = 4; setTimeout(() => 1, 5); codemode.mail__send({}); return 1`})
	got := p.run(scriptedRun{script: `return [typeof left, {}.left, [1].map(x => x), JSON.parse("1"), ToolError.prototype.left, Promise.prototype.left]`})
	want := "result [\"undefined\",null,[1],1,null,null]\n"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestNames holds that a run uses the names of its own revision only.
func TestNames(t *testing.T) {
	p := start(t)
	script := scriptedRun{script: `return ["time__now" in codemode, Object.keys(codemode).length]`}
	if got := p.run(script); got != "result [false,5]\n" {
		t.Errorf("without names: %s", got)
	}
	p.sendNames()
	if got := p.run(script); got != "result [true,18]\n" {
		t.Errorf("with names: %s", got)
	}
	p.send(wire.KindNames, wire.Names{Revision: "r2", Servers: []string{}}, []byte("only"))
	if got := p.run(script); got != "result [false,5]\n" {
		t.Errorf("with the names of another revision: %s", got)
	}
}

// TestToolCalledThen holds that a server is not a promise, whatever its tools are
// called, so that an async function can return it; its tool can be called.
func TestToolCalledThen(t *testing.T) {
	p := start(t)
	p.send(wire.KindNames, wire.Names{Revision: "r1", Servers: []string{"github"}}, []byte("github__list\x00github__then\x00github__toJSON"))
	got := p.run(scriptedRun{script: `
		const g = await (async () => codemode.github)();
		const other = await (async () => codemode.gitlab)();
		const flat = await codemode.github__then({});
		return [typeof g.then, typeof g.toJSON, "then" in g, Object.keys(g), typeof g.list, typeof other.then, flat.tool]`})
	want := "call 1 tool github__then {} (4:22)\nresult [\"undefined\",\"undefined\",false,[\"list\"],\"function\",\"undefined\",\"github__then\"]\n"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestInventory holds the global object to a stored list: nothing comes in or
// goes unnoticed.
func TestInventory(t *testing.T) {
	p := start(t)
	got := p.run(scriptedRun{script: `return Object.getOwnPropertyNames(globalThis).sort().join(" ")`})
	want := "result \"AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError Float32Array Float64Array Function GoError Infinity Int16Array Int32Array Int8Array JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet codemode decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval globalThis input isFinite isNaN parseFloat parseInt undefined unescape\"\n"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
