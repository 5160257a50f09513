// returns: {"low":0,"high":6,"back":"High","keys":["0","5","6","Low","Medium","High"],"color":"green","flag":3,"values":["red","green"]}
enum Level { Low, Medium = 5, High }
enum Color { Red = "red", Green = "green" }
const enum Flag { A = 1 << 0, B = 1 << 1, C = A | B }
return { low: Level.Low, high: Level.High, back: Level[6], keys: Object.keys(Level), color: Color.Green, flag: Flag.C, values: Object.values(Color) };
