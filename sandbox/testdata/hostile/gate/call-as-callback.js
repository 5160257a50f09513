// expect: error TypeError: codemode.echo__say takes one object, got 3 arguments: write codemode.echo
return await Promise.all([{ a: 1 }, { a: 2 }].map(codemode.echo__say));
