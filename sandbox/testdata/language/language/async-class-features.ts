// returns: [["r:ready","1"],0]
class Repo {
  static async open(name: string) { const r = new Repo(name); await r.#init(); return r; }
  #rows: string[] = [];
  private constructor(readonly name: string) {}
  async #init() { await null; this.#rows.push("ready"); }
  async *rows() { for (const r of this.#rows) yield `${this.name}:${r}`; }
  async [Symbol.asyncDispose]() { this.#rows.length = 0; }
  get size() { return this.#rows.length; }
}
const r = await Repo.open("r");
const got: string[] = []; for await (const x of r.rows()) got.push(x);
{ await using x = r; got.push(String(x.size)); }
return [got, r.size];
