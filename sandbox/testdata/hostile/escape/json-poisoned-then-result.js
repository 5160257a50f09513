// expect: result {"real":1}
JSON.stringify = () => '{"forged":true}'; JSON.parse = () => ({forged: true}); String.prototype.toString = () => "forged"; return {real: 1};
