// expect: error TypeError: new Function does not exist here
class List extends Array {
  static get [Symbol.species]() { return Function; }
}
return new List(1, 2).map(() => "return 1");
