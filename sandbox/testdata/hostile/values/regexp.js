// expect: result ["/a/g","lie"]
return [/a/g, Object.assign(/b/, { toString: () => "lie" })];
