// expect: error SyntaxError: new.target expression is not allowed here
return typeof new.target;
