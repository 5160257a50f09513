// expect: result undefined || limit memory || limit recursion
{{16000 x "if(0);else "}};
