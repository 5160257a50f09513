// expect: limit memory || limit recursion
return new RegExp("(?=" + "(".repeat(200000) + ")".repeat(200000) + ")").test("");
