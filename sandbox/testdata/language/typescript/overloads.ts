// returns: ["0007","  ab"," ab","not a string"]
function pad(x: number): string;
function pad(x: string, n?: number): string;
function pad(x: number | string, n: number = 4): string {
  return String(x).padStart(n, typeof x === "number" ? "0" : " ");
}
function assertIsString(x: unknown): asserts x is string {
  if (typeof x !== "string") throw new TypeError("not a string");
}
let caught = "";
try { assertIsString(1 as any); } catch (e: unknown) { caught = (e as Error).message; }
return [pad(7), pad("ab"), pad("ab", 3), caught];
