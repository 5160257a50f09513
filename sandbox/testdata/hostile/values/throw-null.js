// expect: error Error: the script threw null: null
throw null;
