// returns: ["Ann","Cy"]
// input: {"team":"red"}
async (codemode: any, input: { team: string }) => {
  const users = json(await codemode.crm__users({}));
  return users.filter((u: { team: string }) => u.team === input.team).map((u: { name: string }) => u.name);
}
