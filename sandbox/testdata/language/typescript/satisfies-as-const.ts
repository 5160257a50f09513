// returns: {"keys":["home","user"],"n":1,"s":"two","b":true,"mode":"fast","path":"/u/42"}
const routes = { home: "/", user: "/u/:id" } as const satisfies Record<string, string>;
type Route = keyof typeof routes;
const keys = Object.keys(routes) as Route[];
const tuple = [1, "two", true] as const;
const [n, s, b] = tuple;
const config = { retries: 3, mode: "fast" } satisfies { retries: number; mode: "fast" | "slow" };
return { keys, n, s, b, mode: config.mode, path: routes.user.replace(":id", String(<number>42)) };
