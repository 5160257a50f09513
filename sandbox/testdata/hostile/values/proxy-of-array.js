// expect: result [1,2,3]
return new Proxy([1, 2, 3], {});
