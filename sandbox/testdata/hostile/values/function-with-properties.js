// expect: result undefined
return Object.assign(() => 1, { a: 1 });
