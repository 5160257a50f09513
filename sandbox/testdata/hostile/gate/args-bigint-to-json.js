// expect: result {"n":12345678901234567890}
BigInt.prototype.toJSON = function () { return "forged" }; try { return await codemode.echo__say({n: 12345678901234567890n}) } catch (e) { return e.name }
