// expect: result 1
switch (1) { {{20000 x "case 0: "}} } return 1;
