// returns: "ALPHA"
(await codemode.fs__read_file({ path: "a.txt" })).toUpperCase().trim()
