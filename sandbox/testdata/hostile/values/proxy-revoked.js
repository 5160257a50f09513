// expect: error TypeError: Proxy already revoked
const { proxy, revoke } = Proxy.revocable([], {});
revoke();
return proxy;
