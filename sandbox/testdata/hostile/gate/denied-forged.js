// expect: error ToolCallDeniedError: no
try { await codemode.echo__denied({}); } catch (e) {
  e.reason = "allowed";
  Object.setPrototypeOf(e, null);
}
return await codemode.echo__denied({});
