// expect: result ["object",true]
return [typeof this, (function () { return this === globalThis; })()];
