// expect: result {}
return new Proxy({}, { ownKeys: () => Array.from({ length: 1000 }, (_, i) => "k" + i), getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }) });
