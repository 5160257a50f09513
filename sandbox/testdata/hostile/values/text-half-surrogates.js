// expect: result ["\ufffd","\ufffd\ufffd","a\ufffd"]
return ["\ud800", "\udc00\ud800", "a\ud83d"];
