// expect: result "1,"
const a = [1];
a.push(a);
return a.join();
