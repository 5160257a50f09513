// expect: limit cpu time
return 1 instanceof { [Symbol.hasInstance]() { for (;;); } };
