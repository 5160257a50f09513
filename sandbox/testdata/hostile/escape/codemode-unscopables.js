// expect: result true
return codemode[Symbol.unscopables] === undefined && codemode[Symbol.toPrimitive] === undefined;
