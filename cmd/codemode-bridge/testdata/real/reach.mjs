// An upstream that connects to hosts. Its tool reach returns "connected", or the code of
// the error.

import { connect } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer({ name: 'reach', version: '1.0.0' });

server.registerTool('reach', { description: 'Connects', inputSchema: { host: z.string(), port: z.number() } }, async ({ host, port }) => {
  const text = await new Promise((resolve) => {
    const socket = connect({ host, port }, () => {
      socket.destroy();
      resolve('connected');
    });
    socket.on('error', (e) => resolve(e.code));
  });
  return { content: [{ type: 'text', text }] };
});

await server.connect(new StdioServerTransport());
