package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"codemode-bridge/sandbox/racing"
)

// A grammar writes scripts from bytes: each choice takes the next byte, so
// that a fuzzer that changes a byte changes a choice. It writes what is close
// to the limits of engine and parser on purpose.
type grammar struct {
	choices []byte
	depth   int
	out     strings.Builder
}

func (g *grammar) choose(n int) int {
	if len(g.choices) == 0 {
		return 0
	}
	c := int(g.choices[0])
	g.choices = g.choices[1:]
	return c % n
}

func (g *grammar) pick(list []string) string { return list[g.choose(len(list))] }

// production writes one of the patterns, in which E, S, N and O stand for an
// expression, a statement, a name and a size.
func (g *grammar) production(patterns []string) {
	g.depth++
	defer func() { g.depth-- }()
	pattern := patterns[0]
	if g.depth < 12 && g.out.Len() < 4000 && len(g.choices) > 0 {
		pattern = g.pick(patterns)
	}
	for _, c := range pattern {
		switch c {
		case 'E':
			g.production(expressions)
		case 'S':
			g.production(statements)
		case 'N':
			g.out.WriteString(g.pick(names))
		case 'O':
			g.out.WriteString(g.pick(sizes))
		default:
			g.out.WriteRune(c)
		}
	}
}

// The first of each is what a script that has become too large ends with. In
// these texts only the four capital letters are special, so all other names
// are in small letters or taken from names.
var (
	names = []string{
		"a", "b", "c", "globalThis", "codemode", "console", "Object", "Array", "Promise", "Proxy", "Reflect", "Symbol", "Map", "Set", "JSON",
		"Function", "eval", "RegExp", "Error", "String", "BigInt", "Uint8Array", "ArrayBuffer", "Date", "Math", "input", "arguments", "this",
		"prototype", "__proto__", "constructor", "then", "toJSON", "valueOf", "toString", "length", "next", "get", "apply", "echo__say",
		"flat", "sort", "concat", "repeat", "padEnd", "join", "fill", "from", "indexOf", "splice", "replace", "split", "stringify", "parse", "race", "all",
		"Symbol.iterator", "Symbol.species", "Symbol.toPrimitive", "Symbol.hasInstance", "Symbol.asyncIterator",
		"setTimeout", "structuredClone", "queueMicrotask", "URL", "TextEncoder", "crypto", "atob", "json", "emit", "Iterator", "WeakMap",
	}
	sizes       = []string{"0", "1", "-1", "NaN", "1e3", "2**20", "2**31", "2**32-2", "2**53-1", "2**40", "1e300", "10n**20n", "2n**64n", "'9'"}
	expressions = []string{
		"1", "N", "N.N", "N[E]", "N(E)", "N.N(E)", "new N(E)", "new N(O)", "N.N(O)", "[E,E]", "[...E]", "{N:E}", "({a:E,get b(){return E}})", "({[E]:E})", "(E)(E)",
		"E+E", "E**O", "E in E", "E instanceof E", "typeof E", "!E", "-E", "(E,E)", "E?E:E", "E??E", "E?.a", "(a=>E)", "(async()=>E)()", "(function(){S})()",
		"(function*(){yield E;yield* E})()", "(a=E)=>E", "await E", "`${E}`", "'x'.repeat(O)", "new Array(O)", "Array(O).fill(E)", "Array.from({length:O},()=>E)",
		"Array.prototype.N.call({length:O},E)", "new Proxy(E,{N(){return E}})", "Object.create(E)", "Object.setPrototypeOf(E,E)", "Reflect.N(E,E,E)",
		"Object.defineProperty(E,'N',{get(){return E}})", "JSON.N(E)", "Promise.N(E)", "codemode.echo__say(E)", "codemode.N(E)", "codemode.raw('N',E)",
		"/(a+)+$/.test(E)", "/(?=(a*)*)b/.exec(E)", "new RegExp(E)", "'a'.N(E,E)", "class extends N{N(){return super.N}}", "delete N.N", "N=E", "N.N=E",
		"structuredClone(E)", "new Map([[E,E]])", "new Uint8Array(O)", "BigInt(O)", "O", "'\\ud800'", "null", "undefined", "-0", "Symbol('a')",
	}
	statements = []string{
		";", "N=E;", "let {N:d=E}=E;", "var [e=E,...f]=E;", "if(E)S else S", "for(let i=0;i<O;i++)S", "for(const x of E)S", "for(const k in E)S", "while(E)S", "do S while(E);",
		"try{S}catch(e){S}finally{S}", "throw E;", "return E;", "{S S}", "S S", "function a(b){S return a(E)}", "async function b(){S await b(E)}", "class C{static{S}constructor(){S}}",
		"l:for(;;){S break l}", "switch(E){case E:S default:S}", "E;", "await E;", "console.log(E);", "setTimeout(()=>{S},O);", "Promise.reject(E);", "N.prototype.N=E;", "a=()=>E;b=E;",
		"const g=(function*(){S yield E})();", "queueMicrotask(()=>{S});", "(E)=>{S}", "`${E}", "/*S", "((((E", "let a:N<E>=E;", "interface N{N:E}", "for await(const x of E)S",
	}
)

func scriptOf(choices []byte) string {
	g := &grammar{choices: choices}
	for len(g.choices) > 0 && g.out.Len() < 4000 {
		g.production(statements)
		g.out.WriteByte('\n')
	}
	return g.out.String()
}

// hunter runs made scripts and fails at what must never be: an end that no
// error of the script or limit explains, or a session that is of no use after.
type hunter struct {
	pool *Pool
	s    *Session
}

func newHunter(t testing.TB) *hunter {
	pool := workers(t, Options{Limits: Limits{CPU: 200 * time.Millisecond, Waiting: 100 * time.Millisecond, Heap: 64 << 20}})
	return &hunter{pool, pool.Session()}
}

func (h *hunter) hunt(t testing.TB, source string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	_, err := h.s.Run(ctx, Script{Source: source, Names: tools}, new(nobody))
	var script *ScriptError
	var limit *LimitError
	if err != nil && !errors.As(err, &script) && !errors.As(err, &limit) {
		t.Errorf("%s\nended with %v", source, err)
	}
	gives(t, h.s, "return [1, typeof left]", nil, `[1,"undefined"]`)
}

// nobody is a victim that leaves no call open.
type nobody struct{ victim }

func (h *nobody) Call(ctx context.Context, c Call, settle func(Reply)) {
	if c.Name == "echo__wait" {
		c.Name = "echo__denied"
	}
	h.victim.Call(ctx, c, settle)
}

// FuzzScripts makes scripts of a grammar. The worker may die of one, of a
// limit; the parent never does.
func FuzzScripts(f *testing.F) {
	if racing.On {
		f.Skip("the race detector itself needs more memory than a worker gets here")
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		b := make([]byte, 20+random.IntN(100))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		f.Add(b)
	}
	h := newHunter(f)
	f.Fuzz(func(t *testing.T, choices []byte) { h.hunt(t, scriptOf(choices)) })
}

// FuzzSource takes the bytes themselves for a script.
func FuzzSource(f *testing.F) {
	if racing.On {
		f.Skip("the race detector itself needs more memory than a worker gets here")
	}
	for _, s := range []string{"return 1", "a => (a = 1) => 2", "```js\nreturn 1\n```", "\ufeff#!/x\nlet a: T<1> = `${b}`", "for await (x of y) {}", "<a>{b}</a>", "/(?=(a+)+)\\1/u", "\x00\xff"} {
		f.Add(s)
	}
	h := newHunter(f)
	f.Fuzz(func(t *testing.T, source string) { h.hunt(t, source) })
}

// The grammar reaches all that it has to say.
func TestGrammar(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var all strings.Builder
	for range 3000 {
		b := make([]byte, 60)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		fmt.Fprintln(&all, scriptOf(b))
	}
	for _, want := range append(append([]string{"for await(const x of ", "new Proxy("}, names...), sizes...) {
		if !strings.Contains(all.String(), want) {
			t.Errorf("never says %s", want)
		}
	}
}
