// returns: ["15511210043330985984000000","ffffffffffffffff","255","9007199254740993","-3","-1","TypeError",true,true,"bigint","1","-1",123,"1,2,3","123,456,789,012,345,678,901,234,567,890",9007199254740992,true,"1"]
const fact = (n) => (n < 2n ? 1n : n * fact(n - 1n));
let err; try { 1n + 1; } catch (e) { err = e.name; }
return [fact(25n).toString(), (2n ** 64n - 1n).toString(16), BigInt("0xff").toString(), BigInt(2 ** 53) + 1n + "", -7n / 2n + "", -7n % 3n + "", err, 2n > 1, 1n == 1, typeof 1n, BigInt.asUintN(8, 257n) + "", BigInt.asIntN(8, 255n) + "", Number(123n), [3n, 1n, 2n].sort().join(), (123456789012345678901234567890n).toLocaleString(), parseInt("9007199254740993"), 5n << 2n + 1n === 40n, BigInt(true) + ""];
