// expect: error TypeError: Method Date.prototype.valueOf is called on incompatible receiver
return new Proxy(new Date(0), {});
