// One call of a built-in server: what time is it in Tokyo when it is noon in Berlin?
// A tool with an output schema resolves to that object.

const there = await codemode.time__convert({time: "2026-03-02T12:00", from: "Europe/Berlin", to: "Asia/Tokyo"});
return there.iso;

// $ codemode-bridge eval -c docs/examples/config.json -f docs/examples/scripts/first-call.js
// "2026-03-02T20:00:00+09:00"
