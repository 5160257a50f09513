// expect: error Error: the script threw undefined: undefined
throw undefined;
