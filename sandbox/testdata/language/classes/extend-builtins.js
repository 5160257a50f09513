// returns: ["NotFound","user not found",true,false,"NotFound: user not found",12,true,[["a",[1]]],["name","status"]]
class HttpError extends Error { constructor(status, message, options) { super(message, options); this.name = this.constructor.name; this.status = status; } get retryable() { return this.status >= 500; } }
class NotFound extends HttpError { constructor(what) { super(404, `${what} not found`); } }
class List extends Array { sum() { return this.reduce((a, b) => a + b, 0); } }
class DefaultMap extends Map { constructor(make, it) { super(it); this.make = make; } get(k) { if (!this.has(k)) this.set(k, this.make()); return super.get(k); } }
const e = new NotFound("user"); const d = new DefaultMap(() => []); d.get("a").push(1);
return [e.name, e.message, e instanceof HttpError, e.retryable, String(e), List.from([1, 2, 3]).map((x) => x * 2).sum(), new List(1, 2) instanceof Array, [...d], Object.keys(e)];
