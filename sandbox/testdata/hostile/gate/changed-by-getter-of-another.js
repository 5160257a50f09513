// expect: result [{"x":1,"y":3,"z":1},2]
const a = {x: 1, get y() { this.x = 2; return 3 }, z: 1}; const r = await codemode.echo__say(a); return [r, a.x];
