// expect: result undefined || limit memory || limit recursion
{{12000 x "function f(){"}}{{12000 x "}"}}
