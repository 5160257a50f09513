// returns: [["en-US"],["en-US"],"string","[object Intl]"]
return [Intl.NumberFormat.supportedLocalesOf(["en-US"]), Intl.getCanonicalLocales("EN-us"), typeof Intl.supportedValuesOf("timeZone")[0], Object.prototype.toString.call(Intl)];
