// expect: limit cpu time
return `${{ [Symbol.toPrimitive]() { for (;;); } }}`;
