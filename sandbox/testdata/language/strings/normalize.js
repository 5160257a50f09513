// returns: [false,true,1,2,"fi1","Creme Brulee",false,"ab�c",true,"unicode-slug"]
const a = "é", b = "e\u0301";
return [a === b, a === b.normalize(), b.normalize("NFC").length, a.normalize("NFD").length, "ﬁ①".normalize("NFKC"), "Crème Brûlée".normalize("NFD").replace(/[\u0300-\u036f]/g, ""), "ab\uD800".isWellFormed(), "ab\uD800c".toWellFormed(), "ok".isWellFormed(), "Ünïcödé Slug!".normalize("NFD").replace(/\p{Diacritic}/gu, "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")];
