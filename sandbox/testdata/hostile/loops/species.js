// expect: limit cpu time
class L extends Array { static get [Symbol.species]() { for (;;); } }
return new L(1, 2).map(String);
