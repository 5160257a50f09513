// expect: result {"\ufffd":1,"\ufffd":2}
return { "\ud800": 1, "\ufffd": 2 };
