// expect: result 1
return (1 {{20000 x "as any "}});
