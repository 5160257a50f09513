// expect: result "list"
class List extends Array { toJSON() { return "list"; } }
return List.of(1, 2);
