// expect: result "TypeError"
return await new Promise(r => { try { setTimeout("r(1)", 1); setTimeout(() => r("no text"), 5) } catch (e) { r(e.name) } });
