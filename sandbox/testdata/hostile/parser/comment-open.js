// expect: error SyntaxError: unexpected end of the script
/*{{200000 x "*"}}
