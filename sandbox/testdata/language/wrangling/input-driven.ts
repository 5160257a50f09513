// returns: {"dates":["01-01","01-02","01-03"],"names":["a","b"],"missing":"default"}
// input: {"from":"2024-01-01","days":3,"names":["b","a"]}
const { from, days, names = [], missing = "default" } = input as { from: string; days: number; names?: string[]; missing?: string };
return { dates: Array.from({ length: days }, (_, i) => new Date(Date.parse(from) + i * 86_400_000).toISOString().slice(5, 10)), names: names.toSorted(), missing };
