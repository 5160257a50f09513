// expect: result [{},{}]
return [new WeakMap(), new WeakSet()];
