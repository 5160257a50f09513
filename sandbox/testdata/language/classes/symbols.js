// returns: ["20C",20,"d20",true,"[object Temp]","d",true,"k",[1,2]]
class Temp {
  constructor(c) { this.c = c; }
  [Symbol.toPrimitive](hint) { return hint === "string" ? `${this.c}C` : hint === "number" ? this.c : `d${this.c}`; }
  static [Symbol.hasInstance](x) { return "c" in x; }
  get [Symbol.toStringTag]() { return "Temp"; }
}
const t = new Temp(20);
return [`${t}`, +t, t + "", ({ c: 1 }) instanceof Temp, Object.prototype.toString.call(t), Symbol("d").description, Symbol.for("k") === Symbol.for("k"), Symbol.keyFor(Symbol.for("k")), [1].concat({ length: 1, 0: 2, [Symbol.isConcatSpreadable]: true })];
