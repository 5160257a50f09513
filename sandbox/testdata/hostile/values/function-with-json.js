// expect: result "made"
return Object.assign(() => 1, { toJSON: () => "made" });
