// returns: [3,3,0,[1,7]]
const distance = (a: string, b: string): number => {
  const row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    let prev = i - 1; row[0] = i;
    for (let j = 1; j <= b.length; j++) [prev, row[j]] = [row[j], Math.min(row[j] + 1, row[j - 1] + 1, prev + (a[i - 1] === b[j - 1] ? 0 : 1))];
  }
  return row[b.length];
};
return [distance("kitten", "sitting"), distance("", "abc"), distance("same", "same"), ["list_issues", "create_issue"].map((n) => distance(n, "list_isues"))];
