// expect: error SyntaxError: the script is empty: there is nothing to run
{{60000 x "```"}}
