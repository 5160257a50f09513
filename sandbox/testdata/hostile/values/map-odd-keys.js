// expect: result {"NaN":1,"undefined":2,"null":3,"1":4,"1":5,"1":6}
return new Map([[NaN, 1], [undefined, 2], [null, 3], [1n, 4], ["1", 5], [1, 6]]);
