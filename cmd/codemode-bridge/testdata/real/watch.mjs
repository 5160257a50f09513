// An upstream that tells what reaches it. Its tools:
//
//   wait     waits until it is cancelled, sending progress meanwhile
//   log      logs a line of each of two levels
//   aborted  answers, once a wait has been cancelled, how many were
//   seen     the _meta keys of its own request, the names of its environment
//            variables, and its process id

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const server = new McpServer({ name: 'watch', version: '1.0.0' }, { capabilities: { logging: {} } });
const say = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });

let aborted = 0;
let tell;
const first = new Promise((resolve) => (tell = resolve));

server.registerTool('wait', { description: 'Waits until it is cancelled' }, async (extra) => {
  const progressToken = extra._meta?.progressToken;
  for (let progress = 1; !extra.signal.aborted; progress++) {
    if (progressToken !== undefined) {
      const params = { progressToken, progress, message: 'still waiting' };
      await extra.sendNotification({ method: 'notifications/progress', params });
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  aborted++;
  tell();
  return say('cancelled');
});

server.registerTool('log', { description: 'Logs' }, async (extra) => {
  for (const [level, data] of [['debug', 'too fine'], ['warning', 'low on ink\u001b[2J']]) {
    await extra.sendNotification({ method: 'notifications/message', params: { level, logger: 'codemode', data } });
  }
  return say('logged');
});

server.registerTool('aborted', { description: 'Answers once a wait was cancelled' }, async () => {
  await first;
  return say(aborted);
});

server.registerTool('seen', { description: 'What this server was given' }, async (extra) =>
  say({ meta: Object.keys(extra._meta ?? {}).sort(), env: Object.keys(process.env).sort(), pid: process.pid }),
);

await server.connect(new StdioServerTransport());
