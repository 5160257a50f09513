// expect: result 1
{{200000 x "\n"}}return 1;
