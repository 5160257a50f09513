// JSON.stringify throws at a BigInt. Answers hold one where an integer is
// beyond 2^53, so it is written as a string of its digits instead.
(function (define) {
  define(BigInt.prototype, "toJSON", function toJSON() { return this.toString(); });
})
