// returns: [1,false,true,true,true,false,false]
const key = {}, w = new WeakMap([[key, 1]]), s = new WeakSet([key]);
const ref = new WeakRef(key);
const registry = new FinalizationRegistry(() => {});
registry.register(key, "held");
return [w.get(key), w.has({}), s.has(key), ref.deref() === key, w.delete(key), w.has(key), registry.unregister(key)];
