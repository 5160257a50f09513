// expect: result {"0":1,"1":2}
return (function () { return arguments; })(1, 2);
