// expect: error ToolError: there is no such handle
return await codemode.read("h1", "a");
