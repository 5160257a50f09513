// returns: ["#41 first","#42 second"]
const made: string[] = [];
for (const title of ["first", "second"]) {
  const r: { id: number } = json(await codemode.github__create_issue({ title, labels: ["auto"] }));
  made.push(`#${r.id} ${title}`);
}
return made;
