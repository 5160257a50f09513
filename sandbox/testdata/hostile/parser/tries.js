// expect: result 1 || limit memory || limit recursion
{{10000 x "try{"}}{{10000 x "}finally{}"}} return 1;
