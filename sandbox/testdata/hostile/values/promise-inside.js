// expect: result {"deep":{"p":1,"q":null}}
return { deep: { p: Promise.resolve(1), q: new Promise(() => {}) } };
