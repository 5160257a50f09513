// expect: limit cpu time
return Array.from({ length: 100 }, (_, i) => i).sort(() => { for (;;); });
