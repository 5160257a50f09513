// returns: ["the quick\nbrown fox\njumps over\nthe lazy dog","hello…","  a\n\n  b","a    b","Name    |   7"]
const wrap = (t, w) => t.split(" ").reduce((ls, word) => { const l = ls.at(-1); (l + " " + word).trim().length <= w ? (ls[ls.length - 1] = (l + " " + word).trim()) : ls.push(word); return ls; }, [""]).join("\n");
const truncate = (s, n) => (s.length > n ? s.slice(0, n - 1).trimEnd() + "…" : s);
const indent = (s, by = "  ") => s.replace(/^(?=.)/gm, by);
return [wrap("the quick brown fox jumps over the lazy dog", 12), truncate("hello world", 7), indent("a\n\nb"), "a\tb".replace(/\t/g, "    "), `${"Name".padEnd(8)}|${"7".padStart(4)}`];
