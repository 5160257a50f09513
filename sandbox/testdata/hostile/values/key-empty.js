// expect: result {"":{"":1}}
return { "": { "": 1 } };
