// expect: error SyntaxError: expected ";" but found "N"
enum E { A = 1, B = A << 2, C = "x".length } namespace N { export const y = E.B } return [E.B, E[1], N.y];
