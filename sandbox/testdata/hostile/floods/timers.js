// expect: error LimitError: setTimeout was not sent: the limit of 10000 timers a run is reached
for (let i = 0; ; i++) setTimeout(() => {}, 0);
