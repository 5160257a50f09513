// expect: limit memory || limit cpu time
throw new AggregateError(Array.from({ length: 200000 }, (_, i) => new Error("e" + i)), "many");
