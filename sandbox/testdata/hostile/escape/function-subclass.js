// expect: error TypeError: new Function does not exist here
class Maker extends Function {
  constructor() { super("return 1"); }
}
return new Maker()();
