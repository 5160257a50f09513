// expect: limit memory || limit cpu time
return new Array(2 ** 26).join("0123456789").length;
