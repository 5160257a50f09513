// returns: [["en-US","en-GB"],["en-US"],"string","[object Intl]"]
return [Intl.NumberFormat.supportedLocalesOf(["en-US", "en-GB"]), Intl.getCanonicalLocales("EN-us"), typeof Intl.supportedValuesOf("timeZone")[0], Object.prototype.toString.call(Intl)];
