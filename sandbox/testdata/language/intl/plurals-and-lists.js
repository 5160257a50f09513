// returns: [["1st","2nd","3rd","4th","11th","12th","13th","21st","22nd","101st","111th"],["other","one","other","other","one"],"other",["one","other"],"a","a and b","a, b, and c","a, b, or c","a b c","a, b, & c","","a, b","a, b, and c",[{"type":"element","value":"x"},{"type":"literal","value":" and "},{"type":"element","value":"y"}]]
const pr = new Intl.PluralRules("en-US", { type: "ordinal" });
const ord = (n) => `${n}${{ one: "st", two: "nd", few: "rd", other: "th" }[pr.select(n)]}`;
const card = new Intl.PluralRules("en");
const l = (list, o) => new Intl.ListFormat("en", o).format(list);
return [[1, 2, 3, 4, 11, 12, 13, 21, 22, 101, 111].map(ord), [0, 1, 2, 1.5, -1].map((n) => card.select(n)), new Intl.PluralRules("en", { minimumFractionDigits: 1 }).select(1), card.resolvedOptions().pluralCategories, l(["a"]), l(["a", "b"]), l(["a", "b", "c"]), l(["a", "b", "c"], { type: "disjunction" }), l(["a", "b", "c"], { type: "unit", style: "narrow" }), l(["a", "b", "c"], { style: "short" }), l([]), l(["a", "b"], { type: "unit" }), new Intl.ListFormat("en").format(["a", "b", "c"]), new Intl.ListFormat("en").formatToParts(["x", "y"])];
