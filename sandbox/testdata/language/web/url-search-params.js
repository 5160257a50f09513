// returns: ["a=1&a=2&b=new&c=%C3%BC%26%3D","1",["1","2"],false,null,[["k","v"],["k","w"]],["k","k"],{"a":"2","b":"new","c":"ü&="},"  z",["kv","kw"],2,"m=1","https://x.y/?q=a%2Bb+c&n=5&e=",null,true]
const p = new URLSearchParams({ a: "1", b: "x y", c: "ü&=" });
p.append("a", "2"); p.set("b", "new"); p.sort();
const q = new URLSearchParams([["k", "v"], ["k", "w"]]);
const seen = []; q.forEach((v, k) => seen.push(k + v));
return [p.toString(), p.get("a"), p.getAll("a"), p.has("zz"), p.get("zz"), [...q], [...q.keys()], Object.fromEntries(p), new URLSearchParams("?x=1&y=%20+z").get("y"), seen, q.size, String(new URLSearchParams(new Map([["m", 1]]))), `https://x.y/?${new URLSearchParams({ q: "a+b c", n: 5, e: "" })}`, new URLSearchParams("a=1&a=2").delete("a"), p.has("a", "2")];
