// returns: [45,["add(1,2)"]]
const calls: string[] = [];
function logged<T extends (...a: any[]) => any>(fn: T, ctx: ClassMethodDecoratorContext) {
  return function (this: any, ...args: any[]) {
    calls.push(`${String(ctx.name)}(${args.join(",")})`);
    return fn.apply(this, args);
  };
}
function double(_: undefined, ctx: ClassFieldDecoratorContext) { return (v: number) => v * 2; }
class Calc {
  @double base = 21;
  @logged add(a: number, b: number) { return a + b + this.base; }
}
return [new Calc().add(1, 2), calls];
