// expect: result undefined
return () => 1;
