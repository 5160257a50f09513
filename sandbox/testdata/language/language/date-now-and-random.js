// returns: [true,true,true,true,true,"number",true]
const t = Date.now(); const r = Math.random();
return [Number.isInteger(t), t > 1.6e12, r >= 0 && r < 1, new Date() instanceof Date, new Date().getTime() >= t, typeof performance.now(), Date.now() - t < 10_000];
