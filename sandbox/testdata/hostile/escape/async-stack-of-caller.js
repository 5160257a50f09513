// expect: result [true,true]
function f() { return [f.caller === null || f.caller === undefined, (() => { try { return arguments.callee === f } catch (e) { return e.name } })()] } try { return f() } catch (e) { return e.name }
