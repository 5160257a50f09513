// expect: result ["1970-01-01T00:00:00.000Z",null,"+275760-09-13T00:00:00.000Z","-271821-04-20T00:00:00.000Z"]
return [new Date(0), new Date(NaN), new Date(8.64e15), new Date(-8.64e15)];
