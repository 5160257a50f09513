// expect: result ["object",["message","name","constructor"],"undefined",true]
const e = new GoError("text");
return [typeof e, Object.getOwnPropertyNames(GoError.prototype), String(e.value), GoError.prototype.constructor === GoError];
