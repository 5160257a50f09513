// returns: [1,3]
async function* issues() {
  for (let page: number | undefined = 1; page; ) {
    const r = json(await codemode.github__list_issues({ page }));
    yield* r.items;
    page = r.next;
  }
}
const odd: number[] = [];
for await (const i of issues()) { if (i.id % 2) odd.push(i.id); if (odd.length === 2) break; }
return odd;
