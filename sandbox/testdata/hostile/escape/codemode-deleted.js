// expect: result "function"
try { delete globalThis.codemode; } catch (e) {}
return typeof codemode.echo__say;
