// expect: error SyntaxError: unexpected }: no bracket is open that it could close
return 1 }); globalThis.out = 2; (async () => {
