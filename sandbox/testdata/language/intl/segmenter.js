// returns: [["👩‍👩‍👧","é","🇩🇪","a"],["Hello","big","world","It's","3.5"],[["Hi",0,true],[",",2,false],[" ",3,false],["you",4,true]],["One. ","Two? ","Three"],"b"]
const seg = (t, granularity) => [...new Intl.Segmenter("en", { granularity }).segment(t)];
return [seg("👩‍👩‍👧é🇩🇪a", "grapheme").map((s) => s.segment), seg("Hello, big world! It's 3.5", "word").filter((s) => s.isWordLike).map((s) => s.segment), seg("Hi, you", "word").map((s) => [s.segment, s.index, s.isWordLike]), seg("One. Two? Three", "sentence").map((s) => s.segment), new Intl.Segmenter("en").segment("ab").containing(1).segment];
