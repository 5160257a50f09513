package source

// Absent says what to write instead of what other runtimes have.
var Absent = map[string]string{
	"fetch":          "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"XMLHttpRequest": "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"WebSocket":      "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"Headers":        "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"Request":        "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"Response":       "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"FormData":       "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"Blob":           "use Uint8Array, TextEncoder and TextDecoder",
	"_":              "there are no modules here: write with Object.groupBy, Set, structuredClone and the methods of arrays",
	"lodash":         "there are no modules here: write with Object.groupBy, Set, structuredClone and the methods of arrays",
	"moment":         "there are no modules here: write with Date and Intl.DateTimeFormat",
	"dayjs":          "there are no modules here: write with Date and Intl.DateTimeFormat",
	"cheerio":        "this is no browser: use a server's tool for web pages",
	"uuid":           "write crypto.randomUUID()",
	"axios":          "there is no network here: use a server's tool, find one with codemode.search_tools({query: \"...\"})",
	"import":         "there are no modules here: codemode, json, emit, console and input are globals, and what a library would do, a server's tool does",
	"require":        "there are no modules here: codemode, json, emit, console and input are globals, and what a library would do, a server's tool does",
	"module":         "there are no modules here: return the result instead of exporting it",
	"exports":        "there are no modules here: return the result instead of exporting it",
	"process":        "there is no process here: pass values in `input`, return the result instead of writing it",
	"Deno":           "this is not Deno: there are no files and no network; use a server's tool",
	"Bun":            "this is not Bun: there are no files and no network; use a server's tool",
	"fs":             "there are no files here: use a server's tool, such as codemode.filesystem__read_file",
	"path":           "there are no modules here: join paths with strings",
	"os":             "there is no operating system here: use a server's tool",
	"child_process":  "no program can be started here: use a server's tool",
	"Buffer":         "use atob, btoa, TextEncoder, TextDecoder and Uint8Array",
	"window":         "this is no browser: globals stand in globalThis",
	"document":       "this is no browser: use a server's tool for web pages",
	"navigator":      "this is no browser",
	"localStorage":   Kept,
	"sessionStorage": Kept,
	"alert":          "there is nobody to talk to here: return the result, or use console.log",
	"prompt":         "there is nobody to talk to here: pass values in `input`",
	"self":           "write globalThis",
	"print":          "write console.log",
	"printf":         "write console.log",
	"Temporal":       "write with Date",
	"WebAssembly":    "there is no WebAssembly here",
	"Worker":         "there are no workers here: calls run in parallel with Promise.all",
	"mcp":            "tools are called as await codemode.server__tool({...})",
	"tools":          "tools are called as await codemode.server__tool({...})",
}

// Kept says of a name that nobody has defined where it may have been meant to come from.
const Kept = "nothing is kept between scripts: pass data in `input`, return what is needed later"

// Beyond is what the language has and scripts here do not, because the engine
// can't do it or on purpose: what the error says, and what to write instead.
// docs/reference/script.md lists the same words; a test compares them.
var Beyond = map[string]struct{ Message, Hint string }{
	"import()":          {"import() does not exist here", Absent["import"]},
	"namespace":         {"namespace can't be used inside of a function, which a script is", "write an object: const Units = { KB: 1024 }"},
	"JSX":               {"JSX can't be read: there is nothing here to show it", "return data: texts, lists and objects"},
	"{a: [b = 1] = []}": {"the engine can't read a list pattern with a default inside and one behind, such as {a: [b = 1] = []}", "take it apart in two steps: const {a = []} = x; const [b = 1] = a"},
	"deep recursion":    {"maximum call stack size exceeded", "look for a function that calls itself without end; deeper than 4,000 calls, use a loop. It can't be caught: the script ends"},
	"block":             {"inner is not defined", "a function declared in a block is seen only there: declare it outside, or write const f = () => ..."},
	"s += x":            {"the script ran for more than", "appending with += takes time that grows with the square of the text: collect the parts in an array, and join it"},
}
