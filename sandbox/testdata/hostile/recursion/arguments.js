// expect: limit memory || limit recursion || limit cpu time
return Math.max(...new Array(3000000).fill(1));
