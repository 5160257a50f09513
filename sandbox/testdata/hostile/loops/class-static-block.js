// expect: limit cpu time
class A { static { for (;;); } }
