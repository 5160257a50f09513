// expect: error Error: the script threw a symbol: Symbol(x)
throw Symbol("x");
