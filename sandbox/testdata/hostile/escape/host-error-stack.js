// expect: result "none"
try { codemode.echo__say(Symbol()) } catch (e) { return [/\.go|runtime|goja/.test(e.stack), e.name] }
try { await codemode.echo__say({a: Symbol.iterator}) } catch (e) { return [/\.go:|goja/.test(String(e.stack)), e.name] } return "none";
