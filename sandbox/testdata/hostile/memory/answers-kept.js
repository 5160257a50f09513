// expect: limit memory || limit cpu time
const all = [];
for (let i = 0; i < 900; i++) all.push(await codemode.echo__say({ text: "x".repeat(2 ** 20), i }));
return all.length;
