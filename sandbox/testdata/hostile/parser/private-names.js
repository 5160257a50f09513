// expect: error SyntaxError: identifier '#a' has already been declared
class A { {{20000 x "#a;"}} } return 1;
