// expect: result "undefined"
return typeof {{30000 x "\\u0061"}};
