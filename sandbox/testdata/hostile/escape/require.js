// expect: error ReferenceError: require is not defined
return require("fs").readFileSync("/etc/passwd", "utf8");
