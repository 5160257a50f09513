// returns: [[1,2],"Source(n)",[7,8],2,["name","limit"]]
abstract class Source<T> {
  constructor(protected readonly name: string, public limit = 2) {}
  abstract load(): Promise<T[]>;
  async take(): Promise<T[]> { return (await this.load()).slice(0, this.limit); }
  toString(): string { return `Source(${this.name})`; }
}
class Numbers extends Source<number> implements Iterable<number> {
  override async load() { return [1, 2, 3]; }
  *[Symbol.iterator](): Iterator<number> { yield* [7, 8]; }
}
const n = new Numbers("n");
return [await n.take(), `${n}`, [...n], n.limit, Object.keys(n)];
