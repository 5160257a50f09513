// expect: limit cpu time
return new Proxy({}, { get() { for (;;); } }).a;
