// Your accounts: connecting them at servers, and disconnecting.
"use strict";

// connectAccount sends the browser to the server's login, which sends it back here, or
// keeps the token that was pasted.
async function connectAccount(button) {
	const server = button.dataset.server, field = button.parentElement.querySelector("input");
	if (field && !field.value) return say(`paste a token for ${server} first`);
	button.disabled = true;
	try {
		if (field) {
			await api("POST", "/api/accounts/connect", {server, token: field.value});
			field.value = "";
			say(`connected to ${server}`);
			return refresh();
		}
		location.assign((await api("POST", "/api/accounts/connect", {server})).link);
	} catch (error) {
		button.disabled = false;
		say(error.message);
	}
}

async function disconnectAccount(button) {
	const server = button.dataset.server;
	button.disabled = true;
	try {
		const done = await api("POST", "/api/accounts/disconnect", {server});
		say(`disconnected from ${server}: calls made for you there are refused from now on` +
			(done.revoked ? "" : ". The server could not be told: end the access there, too"));
	} catch (error) {
		button.disabled = false;
		say(error.message);
	}
	refresh();
}

// finishAccount connects the account that the browser comes back from. What it came
// back with shall stay nowhere.
async function finishAccount() {
	const returned = location.search.slice(1);
	history.replaceState(null, "", location.pathname);
	try {
		const done = await api("POST", "/api/accounts/finish", {returned});
		$("#connected-says").textContent = `Connected to ${done.server}.`;
		location.replace("/accounts");
	} catch (error) {
		$("#connected-says").textContent = "";
		$("#connected-error").textContent = "Not connected: " + error.message;
	}
}
