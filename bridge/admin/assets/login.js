// Signing in: with a token, a link, or elsewhere.
"use strict";

async function signIn(how) {
	const problem = $("#login-error");
	problem.textContent = "";
	try {
		localStorage.setItem(secretKey, (await api("POST", "/api/login", how)).secret);
		sessionStorage.removeItem("tried");
		const to = sessionStorage.getItem("to") || "/";
		sessionStorage.removeItem("to");
		location.replace(location.pathname === "/login" ? to : location.pathname + location.search);
	} catch (error) {
		problem.textContent = error.message;
	}
}

// signOn goes where one signs in elsewhere, and remembers where one wanted to.
async function signOn() {
	$("#login-error").textContent = "";
	try {
		const next = await api("POST", "/api/login/begin", {});
		if (location.pathname !== "/login") sessionStorage.setItem("to", location.pathname + location.search);
		location.assign(next.go);
	} catch (error) {
		$("#login-error").textContent = error.message;
	}
}

// atTheDoor comes in with what the address brings: the code of a link, in the
// fragment, or what a sign-in elsewhere sends back.
function atTheDoor() {
	const code = new URLSearchParams(location.hash.slice(1)).get("code");
	if (location.pathname === "/login/done") {
		const back = new URLSearchParams(location.search);
		history.replaceState(null, "", "/login"); // it shall stay nowhere
		if (back.get("state") && back.get("code")) return signIn({state: back.get("state"), granted: back.get("code"), issuer: back.get("iss") || ""});
		$("#login-error").textContent = "the sign-in failed: " + (back.get("error_description") || back.get("error") || "nothing came back");
		return;
	}
	const goOn = location.hash === "#sign-on";
	if (location.hash) history.replaceState(null, "", location.pathname + location.search); // it shall stay nowhere
	if (code) return signIn({code});
	if (goOn) return signOn();
	// Whoever comes by a link from another site comes without the cookie, which
	// is strict; asking once more from here brings it.
	if (localStorage.getItem(secretKey) && !sessionStorage.getItem("tried")) {
		sessionStorage.setItem("tried", "once");
		return location.replace(location.href);
	}
	$("#token").focus();
}
