// expect: result "none"
return typeof arguments === "undefined" ? "none" : arguments.length;
