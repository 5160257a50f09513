// expect: result {"shown":2}
class Secret { #hidden = 1; shown = 2; get also() { return 3; } }
return await codemode.echo__say(new Secret());
