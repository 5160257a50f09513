// expect: result {"q":2}
return new (class { #p = 1; q = 2; get r() { return 3; } static s = 4; })();
