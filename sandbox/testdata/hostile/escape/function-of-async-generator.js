// expect: error SyntaxError || error TypeError: new Function does not exist here
return (async function* () {}).constructor("yield 1")().next();
