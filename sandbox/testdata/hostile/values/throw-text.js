// expect: error Error: the script threw a string: text
throw "text";
