// expect: error TypeError: proxy has been revoked
const { proxy, revoke } = Proxy.revocable({ a: 1 }, {});
revoke();
return await codemode.echo__say(proxy);
