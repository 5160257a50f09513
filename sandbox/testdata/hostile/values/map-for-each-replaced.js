// expect: result {"a":1}
Map.prototype.forEach = () => { throw new Error("mine"); };
Map.prototype.entries = Map.prototype[Symbol.iterator] = () => [];
return new Map([["a", 1]]);
