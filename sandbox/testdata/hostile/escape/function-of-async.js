// expect: error TypeError: new Function does not exist here
return await (async () => 0).constructor("return 1")();
