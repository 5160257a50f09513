// expect: result []
globalThis.input = {forged: 1}; const r = []; for (const k of Object.getOwnPropertyNames(globalThis)) { try { const v = globalThis[k]; if (typeof v === "function" && /native/.test(Function.prototype.toString.call(v)) === false) r.push(k) } catch (e) { r.push(k + e.name) } } return r;
