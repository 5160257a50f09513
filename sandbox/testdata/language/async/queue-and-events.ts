// returns: [[1,"a"],"end"]
class Emitter<E extends Record<string, unknown[]>> {
  #on = new Map<keyof E, Array<(...a: any[]) => void>>();
  on<K extends keyof E>(name: K, f: (...a: E[K]) => void): () => void {
    const list = this.#on.get(name) ?? [];
    this.#on.set(name, [...list, f]);
    return () => this.#on.set(name, this.#on.get(name)!.filter((g) => g !== f));
  }
  emit2<K extends keyof E>(name: K, ...args: E[K]) { this.#on.get(name)?.forEach((f) => f(...args)); }
}
const e = new Emitter<{ data: [number, string]; end: [] }>();
const seen: unknown[] = [];
const off = e.on("data", (n, s) => seen.push([n, s]));
e.on("end", () => seen.push("end"));
e.emit2("data", 1, "a"); off(); e.emit2("data", 2, "b"); e.emit2("end");
return seen;
