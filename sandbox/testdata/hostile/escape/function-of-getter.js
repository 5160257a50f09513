// expect: error TypeError: new Function does not exist here
const get = Object.getOwnPropertyDescriptor({ get a() { return 1; } }, "a").get;
return get.constructor("return 1")();
