// An authorization server: oidc-provider, with the accounts ann and bob, whose
// login page anybody passes who posts a name. It says where it listens on the
// first line of its output, and takes commands, one a line, on its input:
//
//   rotate   sign with another key from now on, and publish only that
//
//   node provider.mjs [jwt|opaque] < commands
//
// The word says of what form access tokens are. Claims of a JWT beside the
// protocol's: groups, and email, which nobody needs.

import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';

const groups = { ann: ['platform', 'dev'], bob: ['dev'] };

let made = 0;
function key() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...privateKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: `key-${++made}` };
}

function provider(issuer, jwk) {
  return new Provider(issuer, {
    jwks: { keys: [jwk] },
    scopes: ['openid', 'offline_access', 'mcp'],
    pkce: { required: () => true },
    clients: [{
      client_id: 'the-bridge', client_secret: 'what the bridge asks with', redirect_uris: [], response_types: [], grant_types: [],
    }],
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    findAccount: (_, id) => groups[id] && { accountId: id, claims: () => ({ sub: id }) },
    extraTokenClaims: (_, token) => ({ groups: groups[token.accountId], email: `${token.accountId}@example.com` }),
    interactions: { url: (_, interaction) => `/login/${interaction.uid}` },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: 'mcp', audience: resource, accessTokenTTL: 600,
          accessTokenFormat: process.argv[2],
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  });
}

let server;
let current;
const http = createServer(async (req, res) => {
  try {
    const login = req.url.match(/^\/login\/[^/?]+$/) && req.method === 'POST';
    if (!login) return current(req, res);
    let name = '';
    for await (const part of req) name += part;
    const { params, prompt, session } = await server.interactionDetails(req, res);
    const account = session?.accountId ?? name;
    if (!groups[account]) throw new Error(`nobody is called ${account}`);
    if (prompt.name === 'login') return server.interactionFinished(req, res, { login: { accountId: account } });
    const grant = new server.Grant({ accountId: account, clientId: params.client_id });
    if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
    for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) grant.addResourceScope(resource, scopes.join(' '));
    await server.interactionFinished(req, res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
  } catch (error) {
    res.statusCode = 500;
    res.end(String(error));
  }
});
http.listen(0, '127.0.0.1', async () => {
  const issuer = `http://127.0.0.1:${http.address().port}`;
  const begin = () => {
    server = provider(issuer, key());
    current = server.callback();
  };
  begin();
  console.log(issuer);
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'rotate') {
      begin();
      console.log('rotated');
    }
  }
  process.exit(0);
});
