// expect: result "\u0000\u0001\x7f\u2028\u2029\U0001f600\ufeff\"\\/</script>"
return "\u0000\u0001\u007f\u2028\u2029\ud83d\ude00\ufeff\"\\/</script>";
