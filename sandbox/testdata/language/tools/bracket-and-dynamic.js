// returns: [true,"Ann","function"]
const tool = "crm__users";
const users = json(await codemode[tool]({}));
const { crm__users } = codemode;
const again = json(await crm__users({}));
const first = json(await codemode.crm.users({}));
return [users.length === again.length, first[0].name, typeof codemode.crm__users];
