// expect: error SyntaxError: the engine can't run this: unexpected reserved word
return import.meta.url;
