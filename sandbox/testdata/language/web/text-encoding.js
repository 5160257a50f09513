// returns: [[104,195,169,108,108,111,32,226,130,172,240,159,152,128],"héllo €😀","hé","�A","TypeError",{"read":2,"written":4},[97,226,130,172],"A","utf-8",0,"239,191,189",["","€",""],"A€","é€"]
const e = new TextEncoder(), d = new TextDecoder();
const b = e.encode("héllo €😀");
let fatal; try { new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([0xff])); } catch (x) { fatal = x.name; }
const target = new Uint8Array(4);
const stream = new TextDecoder(); const euro = [0xe2, 0x82, 0xac];
const parts = [stream.decode(new Uint8Array(euro.slice(0, 1)), { stream: true }), stream.decode(new Uint8Array(euro.slice(1)), { stream: true }), stream.decode()];
return [Array.from(b), d.decode(b), d.decode(b.subarray(0, 3)), d.decode(new Uint8Array([0xff, 65])), fatal, e.encodeInto("a€b", target), [...target], d.decode(new Uint8Array([0xef, 0xbb, 0xbf, 65])), d.encoding, e.encode().length, e.encode("\ud800").join(), parts, new TextDecoder("utf-16le").decode(new Uint8Array([65, 0, 172, 32])), new TextDecoder("latin1").decode(new Uint8Array([233, 128]))];
