// returns: [13,6,null,"x"]
type Shape =
  | { kind: "circle"; r: number }
  | { kind: "rect"; w: number; h: number };
function area(s: Shape): number {
  switch (s.kind) {
    case "circle": return Math.round(Math.PI * s.r ** 2);
    case "rect": return s.w * s.h;
    default: { const never: never = s; throw new Error(`unknown ${never}`); }
  }
}
type Maybe<T> = T | null | undefined;
const first = <T>(xs: T[]): Maybe<T> => xs[0];
return [area({ kind: "circle", r: 2 }), area({ kind: "rect", w: 2, h: 3 }), first([]), first<string>(["x"])];
