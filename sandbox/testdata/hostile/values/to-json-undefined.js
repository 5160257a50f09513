// expect: result {"list":[null]}
return { a: { toJSON: () => undefined }, list: [{ toJSON: () => undefined }] };
