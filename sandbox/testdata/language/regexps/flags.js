// returns: [false,true,[1,2,5,6],true,true,true,true,true,false,"gimsuy","a\\/b","/(?:)/g",true,"aa",true]
const sticky = /a/y; const r1 = sticky.test("ba"); sticky.lastIndex = 1; const r2 = sticky.test("ba");
const g = /o/g; const idx = []; let m; while ((m = g.exec("foo boo"))) idx.push(m.index);
return [r1, r2, idx, /a.c/s.test("a\nc"), /^b$/m.test("a\nb"), /É/i.test("é"), /\u{1F600}/u.test("😀"), /^.$/u.test("😀"), /^.$/.test("😀"), /x/gimsuy.flags, new RegExp("a/b").source, String(new RegExp("", "g")), /[\]\-]/.test("-"), /a{2,3}?/.exec("aaaa")[0], /(?:)/.test("")];
