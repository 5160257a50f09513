// returns: {"total":18,"top":[["times",2],["age",1],["best",1]],"longest":"wisdom","acronym":"IWTB"}
const text = `It was the best of times, it was the worst of times, it was the age of wisdom…`;
const stop = new Set(["the", "of", "it", "was"]);
const words = text.toLowerCase().match(/[\p{L}']+/gu);
const freq = words.filter((w) => !stop.has(w)).reduce((m, w) => m.set(w, (m.get(w) ?? 0) + 1), new Map());
return { total: words.length, top: [...freq].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).slice(0, 3), longest: words.reduce((a, b) => (b.length > a.length ? b : a)), acronym: text.match(/\b\w/g).slice(0, 4).join("").toUpperCase() };
