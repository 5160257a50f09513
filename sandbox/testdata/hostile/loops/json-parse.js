// expect: limit cpu time
const s = "[" + "1,".repeat(2 ** 18) + "1]";
for (;;) JSON.parse(s);
