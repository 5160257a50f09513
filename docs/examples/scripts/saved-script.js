// A saved script (../saved/waiting.ts) is called like a tool. Its input is
// checked against the schema in its header; its calls are calls of this run.

const late = await codemode.run("waiting", {before: "2026-03-10"});
return late.length + " wait: " + late.map(o => o.id).join(", ");

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/saved-script.js
// "2 wait: 1002, 1003"
