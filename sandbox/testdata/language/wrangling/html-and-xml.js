// returns: [[{"href":"/a?x=1&y=2","text":"First <one>"},{"href":"/b","text":"Second"}],"First <one> Second","€ 😀"]
const html = `<ul class="list"><li><a href="/a?x=1&amp;y=2">First &lt;one&gt;</a></li><li><a href='/b'>Second</a></li></ul><!-- c --><script>bad()</script>`;
const decode = (s) => s.replace(/&(amp|lt|gt|quot|#39|#(\d+)|#x([0-9a-f]+));/gi, (_, n, d, h) => d ? String.fromCodePoint(+d) : h ? String.fromCodePoint(parseInt(h, 16)) : { amp: "&", lt: "<", gt: ">", quot: '"' }[n] ?? "'");
const links = [...html.matchAll(/<a\s+href=(["'])(.*?)\1[^>]*>(.*?)<\/a>/gs)].map(([, , href, text]) => ({ href: decode(href), text: decode(text) }));
const plain = html.replace(/<script[\s\S]*?<\/script>/gi, "").replace(/<!--[\s\S]*?-->/g, "").replace(/<[^>]+>/g, " ").replace(/\s+/g, " ").trim();
return [links, decode(plain), decode("&#8364; &#x1F600;")];
