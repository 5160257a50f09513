// returns: [true,true,8,true,"TypeMismatchError",50,true,3]
const id = crypto.randomUUID(), b = crypto.getRandomValues(new Uint8Array(8)), w = crypto.getRandomValues(new Uint32Array(2));
let err; try { crypto.getRandomValues(new Float32Array(1)); } catch (e) { err = e.name; }
return [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id), id !== crypto.randomUUID(), b.length, w instanceof Uint32Array, err, new Set(Array.from({ length: 50 }, () => crypto.randomUUID())).size, Math.random() < 1, [1, 2, 3].sort(() => Math.random() - 0.5).length];
