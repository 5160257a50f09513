// expect: limit cpu time
return { toJSON() { for (;;); } };
