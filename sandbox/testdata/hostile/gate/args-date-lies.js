// expect: result {"d":{"not":"a date"}}
const d = new Date(0); d.toJSON = () => ({not: "a date"}); d.toISOString = () => "forged"; return await codemode.echo__say({d});
