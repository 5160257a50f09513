// returns: [[0,1,2,3,4,5],{"value":[0,1],"done":false},{"value":"done","done":true},{"done":true}]
async function* pages(n: number): AsyncGenerator<number[], string> {
  for (let p = 0; p < n; p++) { await null; yield [p * 2, p * 2 + 1]; }
  return "done";
}
const all: number[] = [];
for await (const page of pages(3)) all.push(...page);
const it = pages(1);
return [all, await it.next(), await it.next(), await it.next()];
