// returns: [2,"Error: config unreadable",true,"Expected property name or '}' in JSON at position 1 (line 1 column 2)",false,[],"string",0]
const chain = (e) => { const out = []; for (; e; e = e.cause) out.push(`${e.name}: ${e.message}`); return out; };
try { try { JSON.parse("{bad"); } catch (cause) { throw new Error("config unreadable", { cause }); } } catch (e) {
  return [chain(e).length, chain(e)[0], e.cause instanceof SyntaxError, e.cause.message, "cause" in new Error("x"), Object.keys(e), typeof e.stack, new Error("x", { cause: 0 }).cause];
}
