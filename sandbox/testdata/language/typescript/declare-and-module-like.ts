// returns: ["2.0 KB","undefined","set"]
declare const never: string;
declare function external(x: number): void;
type Units = { readonly KB: number; kb(n: number): string };
const Units: Units = { KB: 1024, kb(n) { return (n / this.KB).toFixed(1) + " KB"; } };
let definite!: string;
definite = "set";
return [Units.kb(2048), typeof never, definite];
