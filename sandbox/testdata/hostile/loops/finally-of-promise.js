// expect: limit cpu time
return await Promise.reject(1).finally(() => { for (;;); });
