// returns: ["number",true,true,5,"object","function","function","object","function","function",true,["function","function"]]
const t = performance.now();
globalThis.shared = 5;
return [typeof t, performance.now() >= t, performance.timeOrigin > 0, shared, typeof globalThis, typeof structuredClone, typeof queueMicrotask, this === undefined || typeof this, typeof AbortController, typeof TextEncoder, isFinite("5"), [typeof setTimeout, typeof clearInterval]];
