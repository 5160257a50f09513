// expect: result ["null","undefined","undefined","null"]
return [Object.getPrototypeOf(codemode), codemode.__proto__, codemode.constructor, Object.getPrototypeOf(codemode.echo)].map(String);
