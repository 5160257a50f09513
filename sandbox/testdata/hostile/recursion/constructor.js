// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
class A { constructor() { return new A(); } }
return new A();
