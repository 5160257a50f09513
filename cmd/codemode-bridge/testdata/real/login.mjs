// A real MCP client that logs in by itself: it learns from the challenge who
// issues tokens, registers, sends a browser there (a script that posts a name to
// the login page), and comes back with a code for its PKCE verifier.
//
//   node login.mjs < job.json > answer.json
//
// job:    {"url", "account", "code"}: the bridge, who logs in, the script for eval;
//         without one the client only logs in
// answer: {"token", "scope", "resource", "result"}: "resource" is what the client
//         asked a token for

import { text } from 'node:stream/consumers';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const job = JSON.parse(await text(process.stdin));

let registered;
let tokens;
let verifier;
let code;
let resource;
const provider = {
  redirectUrl: 'http://127.0.0.1:9/back',
  clientMetadata: {
    client_name: 'real login', redirect_uris: ['http://127.0.0.1:9/back'], grant_types: ['authorization_code'],
    response_types: ['code'], token_endpoint_auth_method: 'none', application_type: 'native',
  },
  clientInformation: () => registered,
  saveClientInformation: (given) => void (registered = given),
  tokens: () => tokens,
  saveTokens: (given) => void (tokens = given),
  saveCodeVerifier: (given) => void (verifier = given),
  codeVerifier: () => verifier,
  redirectToAuthorization: async (address) => {
    resource = address.searchParams.get('resource');
    code = await browse(address);
  },
};

// browse follows the way of a browser, with its cookies, and returns the code that
// the client gets back.
async function browse(address) {
  const cookies = new Map();
  let method = 'GET';
  for (let hop = 0; hop < 20; hop++) {
    if (address.href.startsWith(provider.redirectUrl)) {
      if (!address.searchParams.has('code')) throw new Error(`no code: ${address.search}`);
      return address.searchParams.get('code');
    }
    const res = await fetch(address, {
      method, redirect: 'manual', body: method === 'POST' ? job.account : undefined,
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    });
    for (const cookie of res.headers.getSetCookie()) {
      const [, name, value] = cookie.match(/^([^=]+)=([^;]*)/);
      cookies.set(name, value);
    }
    const next = res.headers.get('location');
    if (!next) throw new Error(`${method} ${address} answers ${res.status}: ${await res.text()}`);
    address = new URL(next, address);
    method = address.pathname.startsWith('/login/') ? 'POST' : 'GET';
  }
  throw new Error('the login does not end');
}

async function connect() {
  const client = new Client({ name: 'real-login', version: '1.0.0' });
  const transport = new StreamableHTTPClientTransport(new URL(job.url), { authProvider: provider });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!code) throw error;
    await transport.finishAuth(code);
    return job.code && connect();
  }
  return { client, transport };
}

const connected = await connect();
let result;
if (connected) {
  result = await connected.client.callTool({ name: 'eval', arguments: { code: job.code } });
  await connected.transport.terminateSession();
  await connected.client.close();
}
console.log(JSON.stringify({ token: tokens.access_token, scope: tokens.scope, resource, result }));
