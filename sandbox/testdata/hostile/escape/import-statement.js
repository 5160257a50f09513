// expect: error SyntaxError: import does not exist here
import fs from "node:fs";
return fs.readFileSync("/etc/passwd", "utf8");
