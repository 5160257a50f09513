// expect: error TypeError: new Function does not exist here
return codemode.echo__say.constructor("return 1")();
