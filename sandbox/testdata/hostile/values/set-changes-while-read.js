// expect: result [2]
const s = new Set();
s.add({ toJSON() { s.add({ toJSON: this.toJSON }); return s.size; } });
return s;
