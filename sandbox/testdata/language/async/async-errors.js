// returns: ["recovered",["f2","mid","TypeError","f1"]]
const trace = [];
async function level3() { throw new TypeError("deep"); }
async function level2() { try { await level3(); } catch (e) { throw new Error("mid", { cause: e }); } finally { trace.push("f2"); } }
async function level1() { try { return await level2(); } catch (e) { trace.push(e.message, e.cause.name); return "recovered"; } finally { trace.push("f1"); } }
return [await level1(), trace];
