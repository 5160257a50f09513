// expect: error SyntaxError: import() does not exist here
return await import("node:fs");
