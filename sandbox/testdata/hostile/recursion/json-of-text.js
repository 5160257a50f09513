// expect: error SyntaxError: json: the text is no JSON (more than 1000 levels at character 1002): "[
return json("[".repeat(500000) + "]".repeat(500000)).length;
