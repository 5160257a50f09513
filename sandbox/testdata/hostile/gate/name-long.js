// expect: error TypeError: codemode.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
return await codemode["a".repeat(100000)]({ a: 1 });
