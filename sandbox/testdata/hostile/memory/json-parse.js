// expect: limit memory
return JSON.parse("[" + "[],".repeat(2 ** 24) + "[]]").length;
