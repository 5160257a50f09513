// expect: limit cpu time
return "a" in new Proxy({}, { has() { for (;;); } });
