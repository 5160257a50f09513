// expect: error TypeError: eval does not exist here
const text = "1\n//# sourceMappingURL=file:///etc/passwd";
return [0].map(() => eval(text));
