// expect: result [{"deep":{"n":2}},{"deep":{"n":1}}]
const a = await codemode.echo__say({ deep: { n: 1 } });
a.deep.n = 2;
const b = await codemode.echo__say({ deep: { n: 1 } });
return [a, b];
