// returns: [[[1,2],[3,4],[5]],[["a",1],["b",2]],["hél","lo"]]
function* chunk<T>(xs: Iterable<T>, n: number) { let buf: T[] = []; for (const x of xs) { buf.push(x); if (buf.length === n) { yield buf; buf = []; } } if (buf.length) yield buf; }
function* zip<A, B>(a: Iterable<A>, b: Iterable<B>): Generator<[A, B]> { const i = a[Symbol.iterator](), j = b[Symbol.iterator](); for (;;) { const x = i.next(), y = j.next(); if (x.done || y.done) return; yield [x.value, y.value]; } }
return [[...chunk([1, 2, 3, 4, 5], 2)], [...zip("abc", [1, 2])], [...chunk("héllo", 3)].map((c) => c.join(""))];
