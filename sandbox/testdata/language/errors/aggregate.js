// returns: [2,"two failed","AggregateError",["Error: x"],true]
const e = new AggregateError([new Error("a"), new TypeError("b")], "two failed");
const rs = await Promise.allSettled([Promise.reject(new Error("x")), 1]);
const failed = rs.filter((r) => r.status === "rejected").map((r) => r.reason);
return [e.errors.length, e.message, e.name, failed.map(String), new AggregateError(failed).errors[0] === failed[0]];
