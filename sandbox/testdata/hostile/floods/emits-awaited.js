// expect: error ToolError: there is no such handle
for (let i = 0; ; i++) await emit("h" + i);
