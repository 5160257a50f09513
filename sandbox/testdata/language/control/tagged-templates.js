// returns: ["<b>&#60;x &#38; y&#62;</b>\\n",true,"C:\\new\\${1 + 1}","first 1\nsecond","abc"]
const html = (s, ...v) => s.raw.map((x, i) => x + (i < v.length ? String(v[i]).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`) : "")).join("");
const same = (s) => s; const t = () => same`x`;
const dedent = (s, ...v) => String.raw({ raw: s.raw }, ...v).split("\n").map((l) => l.trim()).join("\n").trim();
return [html`<b>${"<x & y>"}</b>\n`, t() === t(), String.raw`C:\new\${1 + 1}`, dedent`
    first ${1}
      second
  `, `a${`b${`c`}`}`];
