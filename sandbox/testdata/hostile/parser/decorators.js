// expect: error ReferenceError: a is not defined || limit memory || limit recursion
{{30000 x "@a "}}class A {} return 1;
