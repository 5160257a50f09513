// expect: error Error: polluted
Date.prototype.toISOString = () => { throw new Error("polluted"); };
return new Date(0);
