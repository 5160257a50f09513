// expect: error LimitError: setTimeout was not sent: the limit of 10000 timers a run is reached || limit cpu time
const f = () => setTimeout(f, 0);
f();
await new Promise(() => {});
