// expect: limit cpu time
return { get a() { for (;;); } };
