// expect: result {}
return (function* () { yield 1; })();
