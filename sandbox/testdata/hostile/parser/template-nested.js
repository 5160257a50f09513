// expect: result "1"
return `${{{5000 x "`${"}}1{{5000 x "}`"}}}`;
