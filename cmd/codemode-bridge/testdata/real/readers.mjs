// Reads lines of JSON, each a text that people are shown, and judges how those
// who render Markdown would see it: {text, plain, codes, sent}. Plain is the
// text without the fences of its code spans, codes is what they hold, and sent
// are names and values that the text shows whole; a value without a name stands
// anywhere in it, in code or as a plain word. Prints a line per case that
// is not as it should be, and how many there were.
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import * as commonmark from "commonmark";
import MarkdownIt from "markdown-it";
import { Marked } from "marked";

const parser = new commonmark.Parser(), writer = new commonmark.HtmlRenderer();
const it = new MarkdownIt({ html: true, linkify: true, breaks: true }), strict = new MarkdownIt("commonmark");
const gfm = new Marked({ gfm: true, breaks: true }), plain = new Marked({ gfm: true });
const readers = {
  commonmark: text => writer.render(parser.parse(text)),
  "markdown-it": text => it.render(text),
  "markdown-it, strict": text => strict.render(text),
  marked: text => gfm.parse(text),
  "marked, soft breaks": text => plain.parse(text),
};

const entities = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
const decode = html => html.replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => entities[name]);
const oneLine = text => text.replace(/\n/g, " ").trim();

function judge(c, html) {
  const tags = new Set(html.match(/<[^>]*>/g) ?? []);
  for (const tag of tags) if (!["<p>", "</p>", "<code>", "</code>", "<br>", "<br />"].includes(tag)) return "an element " + tag;
  if (html.split("<p>").length !== 2) return "it is not one paragraph";
  const codes = [...html.matchAll(/<code>([^<]*)<\/code>/g)].map(m => decode(m[1]));
  if (!isDeepStrictEqual(codes, c.codes)) return "the code spans are " + JSON.stringify(codes);
  const text = oneLine(decode(html.replace(/<br ?\/?>\n?/g, "\n").replace(/<[^>]*>/g, "")));
  if (text !== oneLine(c.plain)) return "it reads " + text;
  // A name is a code span, or a plain word.
  const shown = [...html.matchAll(/(?:<code>([^<]*)<\/code>|\b(\w[\w-]*)): (?=<code>([^<]*)<\/code>)/g)].map(m => [m[2] ?? parse(decode(m[1])), parse(decode(m[3]))]);
  const values = codes.map(parse);
  for (const [name, value] of c.sent ?? [])
    if (name === null) {
      const word = /^[\w/-]+$/.test(value) && text.split(/[ ,;:]+/).includes(value);
      if (!word && !values.some(one => isDeepStrictEqual(one, value))) return "it does not show the value " + JSON.stringify(value);
    } else if (!shown.some(one => isDeepStrictEqual(one, [name, value]))) return "it does not show " + JSON.stringify([name, value]);
}

function parse(code) {
  try {
    return JSON.parse(code);
  } catch {
    return undefined;
  }
}

let cases = 0;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const c = JSON.parse(line);
  cases++;
  for (const [name, render] of Object.entries(readers))
    for (const [how, text] of [["as it is", c.text], ["with its lines joined", c.text.replaceAll("\n", " ")]]) {
      const wrong = judge(c, render(text));
      if (wrong) console.log(JSON.stringify({ reader: name, how, wrong, text: c.text }));
    }
}
console.log(JSON.stringify({ cases }));
