// expect: limit cpu time
return new Proxy({}, { ownKeys() { for (;;); } });
