// expect: limit cpu time
return await Array.fromAsync({ async *[Symbol.asyncIterator]() { for (;;) await 0; } });
