// expect: result undefined
const o = {}; return o{{3000 x "?.a"}};
