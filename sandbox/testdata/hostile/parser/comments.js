// expect: result 1
{{60000 x "/**/"}} return 1;
