// expect: result [null,null,null,0,5e-324,1.7976931348623157e+308]
return [NaN, Infinity, -Infinity, -0, 5e-324, 1.7976931348623157e308];
