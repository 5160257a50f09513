// expect: result [7,false]
const stacks = [];
try { [3, 1, 2].sort(() => { throw new Error("a"); }); } catch (e) { stacks.push(e.stack); }
try { JSON.parse("{"); } catch (e) { stacks.push(e.stack); }
try { new URL("::"); } catch (e) { stacks.push(e.stack); }
try { structuredClone(() => 0); } catch (e) { stacks.push(e.stack); }
try { await codemode.echo__say(1); } catch (e) { stacks.push(e.stack); }
try { await codemode.nobody__there({}); } catch (e) { stacks.push(e.stack); }
await Promise.resolve().then(() => null.x).catch((e) => stacks.push(e.stack));
const all = stacks.join("\n");
return [stacks.length, /\.go\b|\/(tmp|home|root|usr|work|var|Users)\/|[A-Z]:\\|file:/.test(all)];
