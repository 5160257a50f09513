// expect: error 1:
throw { message: { toString() { throw new Error("no"); } }, name: 1 };
