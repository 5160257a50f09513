// expect: limit memory || limit recursion
{{100000 x "{"}}
