// expect: error Error: the script threw a value that throws when it is looked at
throw { get message() { throw this; } };
