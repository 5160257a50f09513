// expect: error RangeError: maximum call stack size exceeded (4000 calls deep)
class A { x = new A() } return new A();
