// expect: error SyntaxError: unexpected }: no bracket is open that it could close
}); /* the wrapper ends here
