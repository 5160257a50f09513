// returns: [3,true,512,4,1,-1,2,-5,-2147483648,1,4294967295,275,1000000,"baNaNa","[object Object]",true,"d","o","",true,"object","string",0.30000000000000004,true,false,true,0,"NaN"]
let x = (1, 2, 3);
return [x, void 0 === undefined, 2 ** 3 ** 2, (-2) ** 2, 7 % -3, -7 % 3, 5 / 2 | 0, ~~-5.7, 1 << 31, 1 >>> 0, -1 >>> 0, 0b101 + 0o17 + 0xff, 1_000_000, "b" + "a" + +"a" + "a", [] + {}, [10] == 10, null ?? "d", 0 || "o", "" && "n", !!"0", typeof null, typeof typeof 1, 0.1 + 0.2, NaN !== NaN, "10" > "9", null >= 0, +[], +{} + ""];
