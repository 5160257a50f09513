// returns: {"count":5,"ids":[1,2,3,4,5],"last":"five"}
interface Page { items: { id: number; title: string }[]; next?: number }
const all: Page["items"] = [];
let page: number | undefined = 1;
while (page) {
  const r: Page = json(await codemode.github__list_issues({ page }));
  all.push(...r.items);
  page = r.next;
}
return { count: all.length, ids: all.map((i) => i.id), last: all.at(-1)?.title };
