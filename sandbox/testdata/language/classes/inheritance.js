// returns: ["AB","B!","<AB>","[object AA]",true,true,"proto+","C","","[object AA]"]
class A { constructor() { this.made = new.target.name; } hi() { return "A"; } static create() { return new this(); } get [Symbol.toStringTag]() { return "AA"; } }
class B extends A { x = this.made + "!"; hi() { return super.hi() + "B"; } static make = () => B.create(); }
const mixin = (Base) => class extends Base { hi() { return "<" + super.hi() + ">"; } };
class C extends mixin(B) {}
const o = { __proto__: { hi() { return "proto"; } }, hi() { return super.hi() + "+"; } };
return [new B().hi(), B.make().x, new C().hi(), String(new A()), new C() instanceof A, Object.getPrototypeOf(C.prototype) !== B.prototype, o.hi(), C.name, (class {}).name, new B() + ""];
