// returns: [2262,48889,50]
let primes = 0; const sieve = new Uint8Array(20000);
for (let i = 2; i < sieve.length; i++) { if (sieve[i]) continue; primes++; for (let j = i * 2; j < sieve.length; j += i) sieve[j] = 1; }
const parts = []; for (let i = 0; i < 5000; i++) parts.push(`line ${i}`);
const text = parts.join("\n");
return [primes, text.length, text.split("\n").filter((l) => l.endsWith("99")).length];
