// expect: error SyntaxError: unterminated string literal
return "{{200000 x "a"}}
