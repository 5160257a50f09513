// expect: limit cpu time
return "a".replace(/a/, () => { for (;;); });
