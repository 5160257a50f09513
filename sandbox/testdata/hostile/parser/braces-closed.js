// expect: limit cpu time
{{60000 x "{"}}{{60000 x "}"}} return 1;
