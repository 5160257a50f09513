// expect: error Error: the script threw an object: { a: 1 }
throw { a: 1 };
