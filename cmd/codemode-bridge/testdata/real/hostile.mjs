// What a hostile program tries to reach beyond its box, given the paths and ports as JSON in
// the file that is its argument. It prints a line for each attempt: "reached NAME" or
// "contained NAME".
import { spawn, spawnSync } from "node:child_process";
import dns from "node:dns/promises";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";

const about = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const own = (name) => path.join(about.workspace, name);
const key = (at) => fs.readFileSync(at, "utf8");
const connected = (to) =>
  new Promise((done, failed) => {
    const socket = net.connect({ ...to, timeout: 2000 });
    socket.on("connect", () => (socket.destroy(), done()));
    socket.on("timeout", () => (socket.destroy(), failed(new Error("timeout"))));
    socket.on("error", failed);
  });
const run = (program, ...args) => {
  const { status, error } = spawnSync(program, args, { timeout: 5000 });
  if (error || status !== 0) throw error ?? new Error(String(status));
};

const attempts = {
  "write in its workspace": () => fs.writeFileSync(own("mine"), "mine"),
  "leave a program behind": () => {
    const open = fs.openSync(about.pipe, "w");
    spawn("sleep", ["1000"], { detached: true, stdio: ["ignore", open, "ignore"] }).unref();
  },
  "read a key": () => key(about.key),
  "read a key by a link": () => key(own("link")),
  "read a key by a hard link": () => (fs.linkSync(about.key, own("hard")), key(own("hard"))),
  "read a key by /proc": () => key("/proc/1/root" + about.key),
  "read a key by its parent's folder": () => key("/proc/" + process.ppid + "/cwd/../.ssh/id"),
  "read a key by cat": () => run("cat", about.key),
  "list the home folder": () => { if (!fs.readdirSync(path.dirname(about.workspace)).includes("canary")) throw new Error("not there"); },
  "overwrite the canary": () => (fs.accessSync(about.canary), fs.writeFileSync(about.canary, "overwritten")),
  "rename over the canary": () => (fs.accessSync(about.canary), fs.renameSync(own("had"), about.canary)),
  "hard link the canary": () => (fs.linkSync(about.canary, own("canary")), fs.writeFileSync(own("canary"), "overwritten")),
  "write by a link of its own": () => (fs.symlinkSync(about.canary, own("out")), fs.accessSync(own("out")), fs.writeFileSync(own("out"), "overwritten")),
  "mount": () => run("mount", "--bind", "/", about.workspace),
  "new namespaces": () => run("unshare", "-Ur", "true"),
  "a page of this machine": () => connected({ host: "127.0.0.1", port: about.port }),
  "an address": () => connected({ host: "203.0.113.7", port: 443 }),
  "a name": () => dns.lookup("registry.npmjs.org"),
  "the bridge's socket": () => connected({ path: about.socket }),
  "the agent's socket": () => connected({ path: process.env.SSH_AUTH_SOCK || about.socket }),
  "end the bridge": () => process.kill(about.bridge, 0),
};
for (const [name, attempt] of Object.entries(attempts)) {
  let what = "reached";
  try {
    await attempt();
  } catch {
    what = "contained";
  }
  console.log(`${what} ${name}`);
}
