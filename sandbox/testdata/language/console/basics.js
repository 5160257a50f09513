// returns: null
// logs: ["plain 1 true null undefined { a: 1, b: [ 1, 2, { c: [Object] } ] } [ 1, <1 empty item>, 3 ] -0 5n Symbol(s)","Bob is 42.5 years and 42, 1.5 {\"a\":1} { q: 1 } { x: { y: 1 } } % extra"," styled","Map(1) { 'k' => { v: 1 } } Set(1) { 'a' }","[ [ 'nested', [ 'deep', [Array] ] ] ]","[Function: named] [Function (anonymous)] [class Foo] [class Bar extends Array] [AsyncFunction (anonymous)] [GeneratorFunction: gen]","5n 5n 5n %s","only %s","100% 5","","1970-01-01T00:00:00.000Z /re/g boom [ undefined, null ] { u: undefined, f: [Function: f], g: [Getter/Setter] }","it's [ \"it's\", 'say \"hi\"', '`b`', 'line\\nbreak' ] { '2': 'n', 'odd-key': 1, ok_1: 'y' }"]
console.log("plain", 1, true, null, undefined, { a: 1, b: [1, 2, { c: { d: { e: 1 } } }] }, [1, , 3], -0, 5n, Symbol("s"));
console.log("%s is %d years and %i, %f %j %o %O %%", "Bob", 42.5, 42.5, "1.5", { a: 1 }, { q: 1 }, { x: { y: 1 } }, "extra");
console.info("%c styled", "color: red"); console.warn(new Map([["k", { v: 1 }]]), new Set(["a"])); console.error([["nested", ["deep", ["deeper", ["deepest"]]]]]);
console.debug(function named() {}, () => {}, class Foo {}, class Bar extends Array {}, async () => {}, function* gen() {});
console.log("%i %d %s", 5n, 5n, 5n, "%s"); console.log("%s %s", "only"); console.log("100%", 5); console.log();
console.log(new Date(0), /re/g, new Error("boom").message, [undefined, null], { u: undefined, f() {}, get g() { return 1; }, set g(v) {} });
console.log("it's", ["it's", 'say "hi"', "`b`", "line\nbreak"], { "odd-key": 1, 2: "n", ok_1: "y" });
return null;
