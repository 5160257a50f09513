// expect: limit recursion || limit memory
return {{60000 x "`${"}}
