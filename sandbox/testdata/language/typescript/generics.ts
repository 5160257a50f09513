// returns: [{"odd":[1,3],"even":[2,4]},3,2,"x",1]
function groupBy<T, K extends string | number>(items: T[], key: (item: T) => K): Record<K, T[]> {
  return items.reduce((acc, item) => {
    (acc[key(item)] ||= []).push(item);
    return acc;
  }, {} as Record<K, T[]>);
}
class Stack<T> {
  private items: T[] = [];
  push(...xs: T[]): this { this.items.push(...xs); return this; }
  pop(): T | undefined { return this.items.pop(); }
  get size(): number { return this.items.length; }
}
const identity = <T,>(x: T): T => x;
const s = new Stack<number>().push(1, 2, 3);
return [groupBy([1, 2, 3, 4], (n) => (n % 2 ? "odd" : "even")), s.pop(), s.size, identity<string>("x"), new Map<string, number>([["a", 1]]).get("a")];
