// expect: error TypeError: Promise self-resolution
const p = new Promise((resolve) => setTimeout(() => resolve(p), 1));
return await p;
