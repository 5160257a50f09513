// expect: result undefined || limit memory || limit recursion
return {{10000 x "class extends "}}Object{{10000 x "{}"}};
