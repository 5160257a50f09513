// expect: result 1
await new Promise((resolve) => setTimeout(resolve, NaN));
await new Promise((resolve) => setTimeout(resolve, -1));
await new Promise((resolve) => setTimeout(resolve, Infinity));
await new Promise((resolve) => setTimeout(resolve, { valueOf: () => 1 }));
return 1;
