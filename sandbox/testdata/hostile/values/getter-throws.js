// expect: error RangeError: not you
return { get a() { throw new RangeError("not you"); } };
