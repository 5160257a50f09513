// expect: result 1
console.table(Array.from({ length: 5000 }, (_, i) => ({ ["k" + i]: i })));
return 1;
