// returns: [22,19,2,22,11,239,"1f600",1,2,"Ǆ","日本",3,"\"\\ud83d\"","ABC"]
const s = "naïve café 日本 👩‍👩‍👧";
return [s.length, [...s].length, Array.from("👍🏽").length, s.split("").length, s.indexOf("日"), s.charCodeAt(2), "\u{1F600}".codePointAt(0).toString(16), "ß".localeCompare("ss"), "İ".toLowerCase().length, "ǆ".toUpperCase(), s.slice(11, 13), "a\u0000b".length, JSON.stringify("\ud83d"), "\x41\u0042\u{43}"];
