// expect: result ["object",["toString","valueOf"]]
try { await codemode.echo__say({ get a() { throw { toString: null, valueOf: null }; } }); } catch (e) { return [typeof e, Object.keys(e)]; }
