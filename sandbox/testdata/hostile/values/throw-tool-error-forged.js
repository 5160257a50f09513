// expect: error ToolError: forged
throw Object.assign(new ToolError("forged"), { tool: "bank__pay", server: "bank", call: 1 });
