// expect: error SyntaxError: unexpected "\x00"
{{60000 x "\u0000"}}return 1;
