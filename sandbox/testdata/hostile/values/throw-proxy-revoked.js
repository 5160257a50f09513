// expect: error Error: the script threw a value that throws when it is looked at
const { proxy, revoke } = Proxy.revocable({}, {});
revoke();
throw proxy;
