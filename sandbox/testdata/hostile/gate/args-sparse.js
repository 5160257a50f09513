// expect: result {"list":[null,null,null,1]}
const list = [];
list[3] = 1;
return await codemode.echo__say({ list });
