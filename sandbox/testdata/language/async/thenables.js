// returns: ["unwrapped",false,1,1]
const thenable = { then(ok) { ok({ then(ok2) { ok2("unwrapped"); } }); } };
class Task extends Promise { static get [Symbol.species]() { return Promise; } }
const t = new Task((r) => r(1));
return [await thenable, t.then(() => 1) instanceof Task, (await Promise.all([thenable, t]))[1], await Promise.resolve(t).finally(() => "ignored")];
