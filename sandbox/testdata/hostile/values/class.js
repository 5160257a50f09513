// expect: result undefined
return class A { static a = 1; };
