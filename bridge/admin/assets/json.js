// Where a text is no JSON object, in words for whoever writes it.
"use strict";

// jsonProblem returns what is wrong with a text that should be one JSON object:
// {at, line, column, what}, all counted from 1 but at; null if nothing is.
function jsonProblem(text) {
	let at = 0;
	class Odd extends Error {
		constructor(what, where = at) {
			super(what);
			this.at = where;
		}
	}
	const space = () => { while (" \t\r\n".includes(text[at] ?? "x")) at++; };
	const matched = (pattern) => {
		pattern.lastIndex = at;
		const found = pattern.exec(text)?.[0];
		at += found?.length ?? 0;
		return found;
	};
	const string = () => {
		const begun = at;
		const found = matched(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
		if (found) return found;
		matched(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y);
		if (text[at] === "\\") throw new Odd("a backslash is written \\\\, and before other letters only as \\n, \\t, \\\" or \\u0000");
		if (at < text.length && text[at] !== "\n") throw new Odd("a control character is written as \\u and four digits");
		throw new Odd("this text has no closing quote", begun);
	};
	const value = () => {
		space();
		const begins = text[at];
		if (begins === "{") return object();
		if (begins === "[") return array();
		if (begins === '"') return string();
		if (begins === undefined) throw new Odd("a value is missing at the end");
		if (begins === "'") throw new Odd("a text stands in double quotes");
		if (",}]:".includes(begins)) throw new Odd("a value is missing before " + begins);
		const found = matched(/true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
		if (!found || /[\w.]/.test(text[at] ?? "")) throw new Odd("this is no value: a text stands in double quotes", at - (found?.length ?? 0));
	};
	// members reads what stands between two brackets, with commas.
	const members = (end, one) => {
		at++;
		space();
		if (text[at] === end) return at++;
		for (;;) {
			one();
			space();
			if (text[at] === end) return at++;
			if (text[at] === undefined) throw new Odd(`${end} is missing at the end`);
			if (text[at] !== ",") throw new Odd(`a comma or ${end} is missing here`);
			const comma = at++;
			space();
			if (text[at] === end) throw new Odd(`nothing follows this comma: take it out`, comma);
		}
	};
	const array = () => members("]", value);
	const object = () => {
		const names = new Set();
		members("}", () => {
			space();
			if (text[at] !== '"') throw new Odd(text[at] === undefined ? "} is missing at the end" : "a name in double quotes is missing here");
			const begun = at, name = JSON.parse(string());
			if (names.has(name)) throw new Odd("this name is there already", begun);
			names.add(name);
			space();
			if (text[at] !== ":") throw new Odd("a colon is missing after the name");
			at++;
			value();
		});
	};
	try {
		space();
		if (text[at] !== "{") throw new Odd("the arguments are one JSON object: { … }");
		object();
		space();
		if (at < text.length) throw new Odd("nothing may follow the last }");
		return null;
	} catch (odd) {
		if (!(odd instanceof Odd)) throw odd;
		const before = text.slice(0, odd.at).split("\n");
		return {at: odd.at, line: before.length, column: [...before.at(-1)].length + 1, what: odd.message};
	}
}
