// expect: result [1]
class P extends Promise { then() { return "mine"; } }
return [P.resolve(1)];
