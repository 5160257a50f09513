// returns: [["L'été","c'est","déjà-vu"],["a","b","c","é"],"[^\\p{L}\\p{N}]+","u",true,false,"xxx","gu"]
const words = (s) => s.match(new RegExp("\\p{L}[\\p{L}\\p{M}'’-]*", "gu"));
const re = new RegExp(`[^\\p{L}\\p{N}]+`, "u");
const cls = RegExp("^\\p{Lu}\\p{Ll}+$", "u");
return [words("L'été, c'est déjà-vu"), "a-b_c é".split(new RegExp("[^\\p{L}\\p{N}]+", "gu")), re.source, re.flags, cls.test("Éa"), cls.test("éa"), "héé".replace(new RegExp(/\p{L}/gu), "x"), new RegExp(/\p{Lu}/, "gu").flags];
