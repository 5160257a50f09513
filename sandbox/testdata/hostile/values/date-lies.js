// expect: result {}
const d = new Date(0);
d.toJSON = undefined;
d.toISOString = () => "lie";
return d;
