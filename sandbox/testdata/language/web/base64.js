// returns: ["aMOpbGxv","日本 😀","Pz8_Pj4-","InvalidCharacterError","InvalidCharacterError","hi","",{"sub":"123","name":"Jürgen"},2,"InvalidCharacterError","MjU1"]
const enc = (s) => btoa(Array.from(new TextEncoder().encode(s), (b) => String.fromCharCode(b)).join(""));
const dec = (s) => new TextDecoder().decode(Uint8Array.from(atob(s), (c) => c.charCodeAt(0)));
const url = (s) => enc(s).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMiLCJuYW1lIjoiSsO8cmdlbiJ9.x";
return [enc("héllo"), dec(enc("日本 😀")), url("???>>>"), err(() => btoa("€")), err(() => atob("a")), atob(" aGk = "), btoa(""), JSON.parse(dec(jwt.split(".")[1])), atob("/+A=").length, err(() => atob("a*==")), btoa(255)];
