// returns: [25,16,9,4,1,2]
async function mapLimit<T, R>(items: T[], limit: number, fn: (x: T, i: number) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(items.length);
  let next = 0, active = 0, peak = 0;
  const worker = async () => {
    while (next < items.length) {
      const i = next++;
      peak = Math.max(peak, ++active);
      results[i] = await fn(items[i], i);
      active--;
    }
  };
  await Promise.all(Array.from({ length: limit }, worker));
  return [...results, peak as any];
}
return await mapLimit([5, 4, 3, 2, 1], 2, async (x) => { await new Promise((r) => setTimeout(r, 1)); return x * x; });
