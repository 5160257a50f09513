#!/usr/bin/env node
// Starts the codemode-bridge of the package for this system, with this program's
// arguments, streams and environment. It reads and writes none of the streams: they
// carry MCP. Its end is the bridge's: the same exit code, or the same signal.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');
const path = require('node:path');
const tty = require('node:tty');

const about = require('../package.json');

function fail(why, hint) {
  process.stderr.write(`codemode-bridge: ${why}\nhint: ${hint}\n`);
  process.exit(1);
}

// manifest is where a package has its package.json, and what is in that; undefined if
// the package is not installed. Node looks from this file's real place, which is
// right for npm, pnpm and Yarn with a node_modules folder.
function manifest(name) {
  try {
    const file = require.resolve(`${name}/package.json`);
    return { folder: path.dirname(file), version: require(file).version };
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

function program() {
  const all = Object.keys(about.optionalDependencies);
  const mine = `@codemode-bridge/${process.platform}-${process.arch}`;
  if (!all.includes(mine)) {
    const systems = all.map((name) => name.split('/')[1]).join(', ');
    fail(`there is no package for ${process.platform} on ${process.arch}; there are those for ${systems}`,
      'build it from source with Go: go build -o bin/ ./cmd/...');
  }
  const again = `npm install --include=optional codemode-bridge@${about.version}, with -g if it is to be global`;
  const found = manifest(mine);
  if (!found) {
    const other = all.find((name) => manifest(name));
    if (other) {
      fail(`this Node is for ${process.platform} on ${process.arch}, and what is installed is ${other}`,
        `node_modules was copied from another system, or installed with a Node for another processor; install again: ${again}`);
    }
    fail(`the package ${mine} is not installed; it has the program`,
      `optional dependencies were left out (--omit=optional, --no-optional, or omit in an .npmrc); install again: ${again}`);
  }
  if (found.version !== about.version) {
    fail(`this is version ${about.version}, and ${mine} beside it is ${found.version}`, `install again: ${again}`);
  }
  return path.join(found.folder, 'bin', process.platform === 'win32' ? 'codemode-bridge.exe' : 'codemode-bridge');
}

// npx puts node_modules/.bin of the folder that it is called in, and of all above, before the
// PATH. The servers that the bridge starts are looked for in PATH: a repository must
// not be able to put programs of its own in their place. The last that npx puts there is node-gyp-bin.
function environment() {
  const env = { ...process.env };
  if (env.npm_lifecycle_event !== 'npx') return env;
  for (const name of Object.keys(env)) {
    if (name.toUpperCase() !== 'PATH') continue;
    const entries = env[name].split(path.delimiter);
    const last = entries.findIndex((entry) => path.basename(entry) === 'node-gyp-bin');
    env[name] = entries.slice(last + 1).join(path.delimiter);
  }
  return env;
}

const file = program();
const child = spawn(file, process.argv.slice(2), { stdio: 'inherit', env: environment(), windowsHide: true });

// From a terminal an interrupt reaches the bridge, too: passed on it would be the
// second, at which the bridge ends at once.
const terminal = [0, 1, 2].some((fd) => tty.isatty(fd));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGBREAK']) {
  if (!(signal in constants.signals)) continue;
  process.on(signal, () => {
    const everybody = signal === 'SIGINT' || signal === 'SIGQUIT' || signal === 'SIGBREAK';
    if (!(everybody && terminal)) child.kill(signal);
  });
}

child.on('error', (error) => {
  fail(`starting ${file}: ${error.message}`, 'is it there, and may it be executed? Some virus scanners and mounts with noexec forbid that');
});
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // What does not end this program is an exit code, as shells write it.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 500);
});
