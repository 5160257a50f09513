// expect: result undefined || limit memory || limit recursion
{{40000 x "if(1)"}};
