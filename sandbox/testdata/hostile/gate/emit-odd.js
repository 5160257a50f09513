// expect: error ToolError: there is no such handle
return await emit({ handle: { toString: () => "h1" } });
