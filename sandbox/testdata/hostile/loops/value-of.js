// expect: limit cpu time
return +{ valueOf() { for (;;); } };
