package worker

// beyond is what the language has and the engine can't do, or what this
// place has not on purpose: what the error says, and what to write instead.
// docs/reference/script.md lists the same words; a test holds them together.
var beyond = map[string]struct{ message, hint string }{
	"import()":          {"import() does not exist here", absent["import"]},
	"namespace":         {"namespace can't be used inside of a function, which a script is", "write an object: const Units = { KB: 1024 }"},
	"JSX":               {"JSX can't be read: there is nothing here to show it", "return data: texts, lists and objects"},
	"{a: [b = 1] = []}": {"the engine can't read a list pattern with a default inside and one behind, such as {a: [b = 1] = []}", "take it apart in two steps: const {a = []} = x; const [b = 1] = a"},
	"deep recursion":    {"maximum call stack size exceeded", "look for a function that calls itself without end; deeper than 4,000 calls, use a loop. It can't be caught: the script ends"},
	"block":             {"inner is not defined", "a function declared in a block is seen only there: declare it outside, or write const f = () => ..."},
	"s += x":            {"the script ran for more than", "appending with += takes time that grows with the square of the text: collect the parts in an array, and join it"},
}
