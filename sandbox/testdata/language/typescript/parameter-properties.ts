// returns: ["{\"x\":1,\"_z\":3}",9,2,true]
class Point {
  static #count = 0;
  constructor(public readonly x: number, public y?: number, private _z = 3) { Point.#count++; }
  get z() { return this._z; }
  static get count() { return Point.#count; }
}
const p = new Point(1), q = new Point(1, 2, 9);
return [JSON.stringify(p), q.z, Point.count, "y" in p];
