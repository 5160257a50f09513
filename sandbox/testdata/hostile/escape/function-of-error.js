// expect: error TypeError: new Function does not exist here
try {
  null.x;
} catch (e) {
  return e.constructor.constructor("return 1")();
}
