// expect: result [null,1,"s",false,{},{}]
return [new Number(NaN), new Number(1), new String("s"), new Boolean(false), Object(1n), Object(Symbol("x"))];
