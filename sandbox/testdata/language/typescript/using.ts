// returns: ["+a","+b","work","-b","-a","run","-c"]
const log: string[] = [];
class Lock { constructor(readonly name: string) { log.push("+" + name); } [Symbol.dispose]() { log.push("-" + this.name); } }
{
  using a = new Lock("a");
  using b = new Lock("b");
  log.push("work");
}
async function run() {
  await using c = { async [Symbol.asyncDispose]() { await null; log.push("-c"); } };
  log.push("run");
}
await run();
return log;
