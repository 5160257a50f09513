// expect: limit memory
for (let i = 0; i < 20000; i++) Promise.reject({toString() { throw 1 }, get message() { throw 2 }, get stack() { throw 3 }}).catch(() => {}); return "done";
