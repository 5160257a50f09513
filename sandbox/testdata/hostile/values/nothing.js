// expect: result undefined
return undefined;
