// returns: 42
import type { Foo } from "./foo";
export interface Bar { x: number }
export type Baz = Bar | null;
export const answer: Baz = { x: 42 };
export default async function main() { return answer!.x; }
return await main();
