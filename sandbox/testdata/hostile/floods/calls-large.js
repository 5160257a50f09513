// expect: limit arguments
const text = "x".repeat(2 ** 20);
return (await Promise.allSettled(Array.from({ length: 99 }, () => codemode.echo__wait({ text })))).length;
