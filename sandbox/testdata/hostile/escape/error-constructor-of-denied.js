// expect: result [true,"function","TypeError"]
try { await codemode.echo__denied({}) } catch (e) { return [e instanceof Error, typeof e.constructor.constructor, (() => { try { return e.constructor.constructor("return 1")() } catch (x) { return x.name } })()]; }
