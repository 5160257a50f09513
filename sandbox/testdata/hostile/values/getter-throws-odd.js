// expect: error Error: the script threw null: null
return { get a() { throw null; } };
