// expect: result [[1,2],[null,0,1.5],[-1],[0,0],{}]
return [new Uint8Array([1, 2]), new Float64Array([NaN, -0, 1.5]), new BigInt64Array([-1n]), new ArrayBuffer(2), new DataView(new ArrayBuffer(2))];
