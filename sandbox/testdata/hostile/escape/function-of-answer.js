// expect: error TypeError: new Function does not exist here
const answer = await codemode.echo__say({ a: 1 });
return answer.constructor.constructor("return 1")();
