// expect: limit recursion || limit memory
const {{40000 x "["}}a{{40000 x "]"}} = [];
