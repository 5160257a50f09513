// expect: result [1,{"a":1},[1]]
return [json("1"), json({ a: 1 }), json("[1]")];
