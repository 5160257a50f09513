// expect: limit cpu time
throw { get name() { for (;;); }, get message() { for (;;); } };
