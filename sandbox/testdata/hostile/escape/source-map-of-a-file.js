// expect: error Error: where?
//# sourceMappingURL=file:///etc/passwd
throw new Error("where?");
