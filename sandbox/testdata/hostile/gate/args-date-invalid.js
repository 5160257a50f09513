// expect: error TypeError: codemode.echo__say: args.at is an invalid Date
return await codemode.echo__say({ at: new Date(NaN) });
