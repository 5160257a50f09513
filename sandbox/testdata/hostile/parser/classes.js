// expect: limit memory || limit recursion || limit cpu time
{{10000 x "class A{static{"}}{{10000 x "}}"}}
