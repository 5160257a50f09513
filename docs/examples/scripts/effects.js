// A script that fails halfway says what it had done by then, so that the next
// attempt does not do it twice.

for (const id of ["1002", "1006"]) {
  await codemode.shop__create_note({id, note: "call the customer"});
}
const count = orders.length; // there is no such variable
console.log("notes:", count);

return count;

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/effects.js
// ReferenceError: orders is not defined (line 7, column 15)
//   5 |   await codemode.shop__create_note({id, note: "call the customer"});
//   6 | }
// > 7 | const count = orders.length; // there is no such variable
//     |               ^
//   8 | console.log("notes:", count);
//   9 |
// Hint: nothing is kept between scripts: pass data in `input`, return what is needed later
// Effects: calls: 2 done. Done, and not known to be repeatable, so don't repeat: shop__create_note (call 1), shop__create_note (call 2). Run r4pwo6.
// [exit code 1]
