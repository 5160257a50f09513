// returns: [5,[0.5,1],["a","b"],"five",5,true,true]
const a = 10, b = 2, g = 1;
const x = a / b / g, y = [1, 2].map((n) => n / 2), z = "a/b".split(/\//g), w = `${a / b}`.replace(/5/, "five");
return [x, y, z, w, a /b/ g, /[/]/.test("/"), ((a) => /x/.test(a))("x")];
