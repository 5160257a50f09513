// expect: result 1
return { then(resolve, reject) { resolve(1); reject(2); resolve(3); } };
