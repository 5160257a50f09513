// returns: ["https://api.x.com/v1/search?sort=asc&q=a+%26+b&page=2&on=true&tag%5B%5D=x&tag%5B%5D=y",{"next":"2","last":"9"}]
const build = (base: string, params: Record<string, string | number | boolean | undefined | string[]>) => {
  const url = new URL(base);
  for (const [k, v] of Object.entries(params)) {
    if (v === undefined) continue;
    if (Array.isArray(v)) v.forEach((x) => url.searchParams.append(`${k}[]`, x));
    else url.searchParams.set(k, String(v));
  }
  return url.toString();
};
const next = (link: string) => Object.fromEntries(link.split(/,\s*/).map((p) => { const m = p.match(/<([^>]+)>;\s*rel="([^"]+)"/)!; return [m[2], new URL(m[1]).searchParams.get("page")]; }));
return [build("https://api.x.com/v1/search?sort=asc", { q: "a & b", page: 2, on: true, skip: undefined, tag: ["x", "y"] }), next('<https://h/?page=2>; rel="next", <https://h/?page=9>; rel="last"')];
