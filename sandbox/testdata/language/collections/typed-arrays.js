// returns: [[250,5,44],[125,2,22],2,[190,239,0,0,0,0,0,63],61374,0.5,true,"2,-2",255,[5,44,250],44,1530,1,[2,1],250]
const u = Uint8Array.from([250, 5, 300]);
const f = new Float64Array([1.5, NaN]);
const v = new DataView(new ArrayBuffer(8));
v.setUint16(0, 0xbeef); v.setFloat32(4, 0.5, true);
const b = new BigInt64Array([1n, -1n]);
return [Array.from(u), [...u.map((x) => x / 2)], u.subarray(1).length, Array.from(new Uint8Array(v.buffer)), v.getUint16(0, true), v.getFloat32(4, true), f.includes(NaN), b.map((x) => x * 2n).join(), new Uint8ClampedArray([300, -5])[0], Array.from(u.toSorted()), u.at(-1), new Uint16Array(u.buffer.slice(0, 2))[0], Uint8Array.BYTES_PER_ELEMENT, Array.from(Int16Array.of(1, 2).toReversed()), u.findLast((x) => x > 100)];
