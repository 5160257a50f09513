// A real MCP client, driven by a list of steps.
//
//   node client.mjs <sdk|legacy|modern>   < job.json   > answer.json
//
// sdk     @modelcontextprotocol/sdk, protocol up to 2025-11-25
// legacy  @modelcontextprotocol/client in the same era
// modern  @modelcontextprotocol/client pinned to 2026-07-28
//
// job:    {"command": [program, arg...], "env": {...}} or {"url": "http://...", "token"?},
//         and "steps", each one of
//           {"op": "list"}
//           {"op": "call", "name", "arguments", "progress"?: true, "cancel"?: "text"}
//           {"op": "together", "steps": [...]}
//         With "decision" the client can elicit, and answers every question
//         with it, and with "answers", which are fields beside it.
//         With "model" it lends its model, which always says that.
//         With "logs" it wants to hear log messages of that level and above.
//         "cancel" cancels the call when progress with this text arrives.
// answer: {"protocol", "server", "steps": [...]}, each step with "result" or
//         "error", "invalid", what keeps the structured content of a listed
//         tool from meeting its output schema, as Ajv says it, and "progress",
//         the notifications in the order they came;
//         "asked", the messages of the questions; "lent", what its model was
//         asked; "logged", the log messages.

import { text } from 'node:stream/consumers';
import { Ajv2020 } from 'ajv/dist/2020.js';

const kind = process.argv[2];
const job = JSON.parse(await text(process.stdin));

// What a person at this client would see, and say.
const asked = [];
const lent = [];
const logged = [];
const capabilities = {};
if (job.decision) capabilities.elicitation = { form: {} };
if (job.model) capabilities.sampling = {};
const options = { capabilities };
const over = job.token && { requestInit: { headers: { Authorization: `Bearer ${job.token}` } } };
const elicit = (request) => {
  asked.push(request.params.message);
  const fields = Object.keys(request.params.requestedSchema.properties);
  const all = { decision: job.decision, ...job.answers };
  return { action: 'accept', content: Object.fromEntries(Object.entries(all).filter(([name]) => fields.includes(name))) };
};
const lend = (request) => {
  lent.push(request.params);
  return { role: 'assistant', model: 'real', content: { type: 'text', text: job.model } };
};
const hear = (notification) => void logged.push(notification.params);

// Each kind is the same four things: a client, its transport, the protocol
// version agreed on, and a call with options.
async function connect() {
  const identity = { name: `real-${kind}`, version: '1.0.0' };
  const command = job.command && { command: job.command[0], args: job.command.slice(1), env: job.env, stderr: 'inherit' };

  if (kind === 'sdk') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client(identity, options);
    const types = await import('@modelcontextprotocol/sdk/types.js');
    if (job.decision) client.setRequestHandler(types.ElicitRequestSchema, elicit);
    if (job.model) client.setRequestHandler(types.CreateMessageRequestSchema, lend);
    client.setNotificationHandler(types.LoggingMessageNotificationSchema, hear);
    const transport = command ? new StdioClientTransport(command) : new StreamableHTTPClientTransport(new URL(job.url), over);
    let protocol;
    const set = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
      protocol = version;
      set?.(version);
    };
    await client.connect(transport);
    return { client, transport, protocol, call: (params, options) => client.callTool(params, undefined, options) };
  }

  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const mode = { legacy: 'legacy', modern: { pin: '2026-07-28' } }[kind];
  if (!mode) throw new Error(`no such kind of client: ${kind}`);
  const client = new Client(identity, { ...options, versionNegotiation: { mode } });
  if (job.decision) client.setRequestHandler('elicitation/create', elicit);
  if (job.model) client.setRequestHandler('sampling/createMessage', lend);
  client.setNotificationHandler('notifications/message', hear);
  const transport = command ? new StdioClientTransport(command) : new StreamableHTTPClientTransport(new URL(job.url), over);
  await client.connect(transport);
  return {
    client,
    transport,
    protocol: client.getNegotiatedProtocolVersion(),
    call: (params, options) => client.callTool(params, options),
  };
}

const { client, transport, protocol, call } = await connect();
const server = client.getServerVersion();
// The stateless protocol has the level in each request.
if (job.logs && kind !== 'modern') await client.setLoggingLevel(job.logs);
const _meta = job.logs && kind === 'modern' ? { 'io.modelcontextprotocol/logLevel': job.logs } : undefined;

// The output schemas of the tools that were listed, by name.
const schemas = new Map();
const ajv = new Ajv2020({ strict: true, allErrors: true });

function list(result) {
  for (const tool of result.tools) if (tool.outputSchema) schemas.set(tool.name, ajv.compile(tool.outputSchema));
  return { result };
}

function invalid(name, result) {
  const meets = schemas.get(name);
  return !meets || meets(result.structuredContent ?? null) ? undefined : ajv.errorsText(meets.errors);
}

async function step(s) {
  if (s.op === 'together') return { steps: await Promise.all(s.steps.map(step)) };
  const progress = [];
  try {
    if (s.op === 'list') return list(await client.listTools());
    if (s.op !== 'call') throw new Error(`no such step: ${s.op}`);
    const stop = new AbortController();
    const options = { signal: stop.signal, timeout: 120_000 };
    if (s.progress || s.cancel) {
      options.onprogress = (p) => {
        progress.push(p);
        if (s.cancel && p.message?.includes(s.cancel)) stop.abort('the user pressed stop');
      };
    }
    const result = await call({ name: s.name, arguments: s.arguments, _meta }, options);
    return { result, invalid: invalid(s.name, result), progress };
  } catch (error) {
    return { error: { name: error?.name ?? typeof error, message: String(error?.message ?? error), code: error?.code }, progress };
  }
}

const steps = [];
for (const s of job.steps) steps.push(await step(s));
// An old-era HTTP session ends when the client says so.
if (transport.sessionId) await transport.terminateSession();
await client.close();
console.log(JSON.stringify({ protocol, server, steps, asked, lent, logged }));
