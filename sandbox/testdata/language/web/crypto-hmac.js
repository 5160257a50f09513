// returns: ["8b5f48702995c1598c573db1e21866a9b825d4a794d169d7060a03605796360b",true,false,"secret","HMAC"]
const key = await crypto.subtle.importKey("raw", new TextEncoder().encode("secret"), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
const data = new TextEncoder().encode("message");
const mac = await crypto.subtle.sign("HMAC", key, data);
const hex = [...new Uint8Array(mac)].map((x) => x.toString(16).padStart(2, "0")).join("");
return [hex, await crypto.subtle.verify("HMAC", key, mac, data), await crypto.subtle.verify("HMAC", key, mac, new TextEncoder().encode("other")), key.type, key.algorithm.name];
