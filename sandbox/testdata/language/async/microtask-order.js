// returns: ["sync","end","microtask","then","after await","then2","timeout"]
const log = [];
setTimeout(() => log.push("timeout"), 0);
queueMicrotask(() => log.push("microtask"));
Promise.resolve().then(() => log.push("then")).then(() => log.push("then2"));
(async () => { log.push("sync"); await null; log.push("after await"); })();
log.push("end");
await new Promise((r) => setTimeout(r, 5));
return log;
