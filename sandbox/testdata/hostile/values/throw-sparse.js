// expect: error Error: the script threw an array: [ <4294967294 empty items>, 1 ]
const a = [];
a[2 ** 32 - 2] = 1;
throw a;
