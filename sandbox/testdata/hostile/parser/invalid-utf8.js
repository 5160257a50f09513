// expect: result 11
return "\ud800".length + "{{10 x "\u00ff"}}".length;
