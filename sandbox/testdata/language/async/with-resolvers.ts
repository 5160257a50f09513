// returns: [42,"rejected","function"]
const { promise, resolve, reject } = Promise.withResolvers<number>();
setTimeout(() => resolve(42), 1);
const second = Promise.withResolvers<void>();
const caught = second.promise.catch((e: Error) => e.message);
second.reject(new Error("rejected"));
return [await promise, await caught, typeof reject];
