// expect: result 1
debugger;
return 1;
