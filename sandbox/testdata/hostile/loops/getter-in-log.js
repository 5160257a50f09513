// expect: limit cpu time
console.log({ get a() { for (;;); }, toString() { for (;;); } });
console.log(new Proxy({}, { get() { for (;;); }, ownKeys() { for (;;); } }));
return 1;
