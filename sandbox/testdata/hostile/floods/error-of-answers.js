// expect: error AggregateError: denied (ToolCallDeniedError: no; ToolCallDeniedError: no; ToolCallDe
const all = await Promise.allSettled(Array.from({ length: 500 }, (_, i) => codemode.echo__denied({ i })));
throw new AggregateError(all.map((r) => r.reason), "denied");
