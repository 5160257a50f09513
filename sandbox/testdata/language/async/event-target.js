// returns: ["x","object true"]
const t = new EventTarget();
const seen = [];
const l = (e) => seen.push(e.type);
t.addEventListener("x", l); t.addEventListener("x", l);
t.addEventListener("x", { handleEvent(e) { seen.push("object " + (e.target === t)); } }, { once: true });
t.dispatchEvent(new Event("x")); t.removeEventListener("x", l); t.dispatchEvent(new Event("x"));
return seen;
