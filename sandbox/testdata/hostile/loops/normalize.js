// expect: limit cpu time
let s = "\u1e9b\u0323".repeat(1e5); for (;;) s = s.normalize("NFD").normalize("NFC");
