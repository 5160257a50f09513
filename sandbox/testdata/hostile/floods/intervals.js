// expect: error LimitError: setInterval was not sent: the limit of 10000 timers a run is reached
for (let i = 0; i < 1000; i++) setInterval(() => {}, 1);
await new Promise(() => {});
