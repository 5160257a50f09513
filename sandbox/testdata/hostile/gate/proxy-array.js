// expect: result {"list":[1,2,null]}
return await codemode.echo__say({ list: new Proxy([1, 2], { get: (t, k) => (k === "length" ? 3 : t[k]) }) });
