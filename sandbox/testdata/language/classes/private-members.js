// returns: [5,true,false,1,"{}",["Error: read only","RangeError: amount must be positive"]]
class Account {
  #balance = 0; static #opened = 0; #log = [];
  static open(n) { const a = new Account(); a.#deposit(n); Account.#opened++; return a; }
  #deposit(n) { if (n <= 0) throw new RangeError("amount must be positive"); this.#balance += n; this.#log.push(n); }
  get balance() { return this.#balance; }
  set balance(v) { throw new Error("read only"); }
  static is(o) { return #balance in o; }
  static get opened() { return this.#opened; }
}
const a = Account.open(5);
let errs = [];
for (const f of [() => { a.balance = 1; }, () => Account.open(-1)]) try { f(); } catch (e) { errs.push(`${e.name}: ${e.message}`); }
return [a.balance, Account.is(a), Account.is({}), Account.opened, JSON.stringify(a), errs];
