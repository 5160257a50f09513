// returns: [["a","b"],true,false,"default",false]
class Registry {
  static readonly instances: Registry[] = [];
  static { Registry.instances.push(new Registry("default")); }
  declare extra: string;
  #names = new Set<string>();
  constructor(public label: string) {}
  set name(v: string) { this.#names.add(v.trim()); }
  get names(): string[] { return [...this.#names].sort(); }
  has(x: object): x is Registry { return #names in x; }
}
const r = Registry.instances[0];
r.name = " b "; r.name = "a"; r.name = "b";
return [r.names, r.has(r), r.has({}), r.label, "extra" in r];
