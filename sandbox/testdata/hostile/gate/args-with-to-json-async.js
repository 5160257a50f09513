// expect: error TypeError: codemode.echo__say: args.a is a promise: await it first
return await codemode.echo__say({a: {toJSON: async () => ({b: 1})}});
