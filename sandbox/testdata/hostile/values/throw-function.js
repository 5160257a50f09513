// expect: error Error: the script threw a function: [Function (anonymous)]
throw () => 1;
