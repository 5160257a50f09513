// expect: result of 348891 bytes || limit memory
return Array.from({ length: 30000 }, (_, i) => ({ i }));
