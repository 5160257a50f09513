// returns: {"v":1,"c":2,"cls":3,"def":4,"π":"3.14","$":1,"_":2,"ключ":true,"ab":3}
const lib = (() => { const priv = 1; return { pub: () => priv, const: 2, class: 3, default: 4 }; })();
const { class: cls, default: def } = lib;
return { v: lib.pub(), c: lib.const, cls, def, π: Math.PI.toFixed(2), $: 1, _: 2, "ключ": true, \u0061b: 3 };
