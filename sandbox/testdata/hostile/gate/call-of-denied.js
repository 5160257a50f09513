// expect: result ["ToolCallDeniedError","denied",true]
try { return await codemode.echo__denied({ a: 1 }); } catch (e) { return [e.name, e.reason, e instanceof ToolCallDeniedError]; }
