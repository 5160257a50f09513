// expect: limit recursion || limit memory
const {{30000 x "{a:"}}a{{30000 x "}"}} = {};
