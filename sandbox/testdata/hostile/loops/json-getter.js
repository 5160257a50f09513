// expect: limit cpu time
return JSON.stringify({ get a() { for (;;); } });
