// expect: result {"list":[null,null,null]}
return { a: undefined, list: [undefined, , null] };
