// returns: ["4f9f2cab","1b521a56","Uryyb","e282ac","aGVsbG8=","hello","4oKs","11111111",255,"0.8",31,"z"]
const fnv = (s) => { let h = 0x811c9dc5; for (const c of new TextEncoder().encode(s)) h = Math.imul(h ^ c, 0x01000193) >>> 0; return h.toString(16); };
const rot13 = (s) => s.replace(/[a-z]/gi, (c) => String.fromCharCode((c <= "Z" ? 90 : 122) >= (c = c.charCodeAt(0) + 13) ? c : c - 26));
const hex = (s) => Array.from(new TextEncoder().encode(s), (b) => b.toString(16).padStart(2, "0")).join("");
return [fnv("hello"), fnv("ünï"), rot13("Hello"), hex("€"), btoa("hello"), atob("aGVsbG8="), btoa(String.fromCharCode(...new TextEncoder().encode("€"))), (255).toString(2), parseInt("ff", 16), (0.5).toString(16), Number("0x1f"), (35).toString(36)];
