// expect: result false
return new RegExp("(?=(" + "a?".repeat(40) + "a{40})+$)").test("a".repeat(80) + "b".repeat(40));
