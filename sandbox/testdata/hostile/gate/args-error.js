// expect: result {"e":{"name":"Error","message":"x"},"r":"/x/g","f":[0,0],"w":{}}
return await codemode.echo__say({e: new Error("x"), r: /x/g, f: new Float64Array(2), w: new WeakMap()});
