// returns: true
// logs: ["MyError: bad bad MyError: bad [ 'MyError', 'E1' ] MyError: bad","{ status: 'failed', reason: 'bad' }","many 1 [object Error]"]
class MyError extends Error { constructor(m) { super(m); this.name = "MyError"; this.code = "E1"; } }
const first = (s) => String(s).split("\n")[0];
const e = new MyError("bad");
console.log(String(e), e.message, `${e}`, [e.name, e.code], first(e.stack));
console.log({ status: "failed", reason: e.message });
const a = new AggregateError([new Error("one")], "many");
console.log(a.message, a.errors.length, Object.prototype.toString.call(a));
return e instanceof MyError;
