// expect: result 1
{{60000 x "\ufeff"}}return 1;
