// expect: limit memory || limit recursion || result "function"
const f = () => f; return typeof f{{60000 x "()"}};
