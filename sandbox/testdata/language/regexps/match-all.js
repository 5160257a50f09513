// returns: [[["alice","org",0],["bob","com",13],["carol","net",24]],[{"t":"a","u":"http://a"},{"t":"b","u":"http://b"}],"TypeError",["@x","@y","@z"],null,3]
const text = "alice@x.org, bob@y.com; carol@z.net";
const all = [...text.matchAll(/(\w+)@(\w+)\.(?<tld>\w+)/g)];
const links = Array.from("[a](http://a) and [b](http://b)".matchAll(/\[([^\]]+)\]\(([^)]+)\)/g), ([, t, u]) => ({ t, u }));
let err = ""; try { "x".matchAll(/x/); } catch (e) { err = e.name; }
return [all.map((m) => [m[1], m.groups.tld, m.index]), links, err, text.match(/@\w+/g), "none".match(/z/g), "aaa".match(/a/g).length];
