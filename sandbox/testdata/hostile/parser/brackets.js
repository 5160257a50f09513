// expect: limit recursion || limit memory
{{100000 x "["}}
