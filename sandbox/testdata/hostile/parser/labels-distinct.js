// expect: error SyntaxError: duplicate label "a"
{{1000 x "{a:"}};{{1000 x "}"}} return 1;
