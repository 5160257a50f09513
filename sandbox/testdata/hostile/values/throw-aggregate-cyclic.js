// expect: error AggregateError: m (AggregateError: m; AggregateError: m)
const e = new AggregateError([], "m"); e.errors.push(e, e); e.cause = e; throw e;
