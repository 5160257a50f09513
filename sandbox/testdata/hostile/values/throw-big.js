// expect: error Error: the script threw a BigInt: 1n
throw 1n;
