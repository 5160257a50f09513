// returns: [3,1]
const a = 1
const b = 2
;[a, b].forEach(() => {})
let c = a
+ b
const f = () => {
  return /* comment */ c
}

return [f(), /* a */ 1 // trailing
]
