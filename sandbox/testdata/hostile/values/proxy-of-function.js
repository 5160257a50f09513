// expect: result undefined
return new Proxy(() => 1, {});
