// expect: error ReferenceError: fetch is not defined
return await fetch("http://169.254.169.254/latest/meta-data/");
