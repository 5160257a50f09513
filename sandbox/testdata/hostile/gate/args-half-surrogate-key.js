// expect: error TypeError: codemode.echo__say: args has the key "a\ufffd" with half of a surrogate pair, which JSON can't hold
return await codemode.echo__say({ "a\ud800": 1 });
