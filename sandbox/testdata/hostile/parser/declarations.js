// expect: result 1
{{20000 x "{let a=1}"}} return 1;
