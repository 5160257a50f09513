// expect: limit recursion || limit memory
return {{40000 x "{a:"}}1{{40000 x "}"}};
