// expect: error ReferenceError: process is not defined
return process.env;
