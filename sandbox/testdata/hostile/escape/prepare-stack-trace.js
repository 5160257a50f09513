// expect: result "string"
Error.prepareStackTrace = (e, frames) => frames.map((f) => f.getFunction());
try { null.x; } catch (e) { return typeof e.stack; }
