// expect: limit cpu time
function* all() { for (let i = 0; ; i++) yield i; }
return all().filter(() => false).next();
