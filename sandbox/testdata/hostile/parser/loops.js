// expect: limit source
{{40000 x "for(;;)"}};
