// expect: limit memory
return [..."x".repeat(2 ** 25).matchAll(/x/g)].length;
