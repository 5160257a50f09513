// Runs scripts of sandbox/testdata/language in Node: the same forms, the same
// globals, the same tools. Standard input holds {tools, scripts: [{name,
// block, expression, input}]}, where block and expression are the script as
// an async function and as an expression, types stripped. Standard output is
// [{name, result, logs, error}], a result being JSON text.
import { Console } from "node:console";
import { Writable } from "node:stream";

class ToolError extends Error {
  name = "ToolError";
}

// stub makes the codemode object of one script: tools.json says what a tool
// answers to which arguments.
function stub(tools) {
  const calls = {};
  const call = (name) => async (args = {}) => {
    calls[name] = (calls[name] ?? 0) + 1;
    const a = tools[name].find((a) => Object.entries(a.args ?? {}).every(([k, v]) => args[k] === v));
    if (!a) throw new ToolError(`${name} has no answer to ${JSON.stringify(args)}`);
    if (a.error && !(a.fails < calls[name])) throw new ToolError(a.error);
    return a.json === undefined ? a.text : structuredClone(a.json);
  };
  const codemode = {};
  for (const name of Object.keys(tools)) {
    const [server, tool] = name.split("__");
    codemode[name] = call(name);
    (codemode[server] ??= {})[tool] = codemode[name];
  }
  return codemode;
}

async function run({ name, block, expression, input }, tools) {
  const logs = [];
  const out = new Writable({ write: (text, _, done) => (logs.push(String(text).replace(/\n$/, "")), done()) });
  Object.assign(globalThis, {
    codemode: stub(tools), input, ToolError,
    json: (x) => (typeof x === "string" ? JSON.parse(x) : x),
    console: new Console({ stdout: out, stderr: out }),
  });
  try {
    let value = await (0, eval)(block)();
    if (value === undefined) {
      value = await (0, eval)(expression)();
      if (typeof value === "function") value = await value(codemode, input);
    }
    return { name, result: JSON.stringify(value), logs };
  } catch (e) {
    return { name, error: String(e?.stack ?? e), logs };
  }
}

let text = "";
for await (const chunk of process.stdin) text += chunk;
const { tools, scripts } = JSON.parse(text);
const print = (x) => process.stdout.write(x);
const results = [];
for (const s of scripts) results.push(await run(s, tools));
print(JSON.stringify(results));
