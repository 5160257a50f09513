// description: Twice a number.
// input: {"type": "object", "properties": {"n": {"type": "number"}}}
return { twice: input.n * 2, text: await codemode.utils__base64_encode({ text: String(input.n) }) };
