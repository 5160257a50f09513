// expect: error TypeError: codemode.echo__say: args.deep[0].n is NaN, which JSON can't hold
return await codemode.echo__say({ deep: [{ n: 0 / 0 }] });
