// What the other scripts stand on: requests to the bridge, news, clocks.
// The server renders everything that is shown. No script makes an element out of
// any text: fragments come from the server, where templates escape them, and all
// else is written as text.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const tab = document.body.dataset.tab;

// The second secret came with the sign-in. Other origins, also on other ports
// of this machine, which get the cookie, cannot read it.
const secretKey = "codemode-secret";

// api sends a request and returns the answer, or throws an Error that a person
// can read. Body is JSON text or a value.
async function api(method, path, body) {
	const headers = {Accept: "application/json"};
	const secret = localStorage.getItem(secretKey);
	if (secret) headers["X-Codemode-Secret"] = secret;
	if (body !== undefined) headers["Content-Type"] = "application/json";
	let response;
	try {
		response = await fetch(path, {
			method, headers, credentials: "same-origin", cache: "no-store", redirect: "error",
			body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
		});
	} catch {
		throw new Error("the bridge does not answer");
	}
	let answer = {};
	try {
		answer = await response.json();
	} catch { /* the status says enough */ }
	if (response.ok) return answer;
	if (response.status === 401 && tab !== "") signedOut();
	const why = answer.error || {message: "the bridge answered " + response.status};
	const error = new Error(why.message + (why.hint ? " (" + why.hint + ")" : ""));
	error.code = why.code;
	throw error;
}

// fetchPage reads another page of ours as a document, without running it.
async function fetchPage(path) {
	const response = await fetch(path, {credentials: "same-origin", cache: "no-store", redirect: "error"});
	if (response.status === 401) signedOut();
	if (!response.ok) throw new Error("the bridge answered " + response.status);
	return new DOMParser().parseFromString(await response.text(), "text/html");
}

// say writes one line of news below the tabs, where it covers nothing; about, if
// given, is the request that it is of.
function say(text, about) {
	const said = $("#said");
	if (!said) return;
	said.textContent = text;
	if (!about) return;
	const link = document.createElement("a");
	link.href = "/r/" + encodeURIComponent(about);
	link.textContent = "look at it";
	said.append(" ", link);
}

function banner(text) {
	const b = $("#banner");
	b.textContent = text;
	b.hidden = !text;
}

let out = false;
function signedOut() {
	out = true;
	if (stream) stream.close();
	banner("You are signed out. Load the page again to sign in; nothing more can be decided here.");
	all("[data-do]").forEach((b) => { b.disabled = true; });
}

// ---- clocks

// ahead is how far this machine's clock is ahead of the bridge's.
let ahead = Date.now() - Number(document.body.dataset.now);

function tick() {
	if (out) return;
	const now = Date.now() - ahead;
	for (const t of all("time[data-until]")) {
		const seconds = Math.max(0, Math.ceil((Number(t.dataset.until) - now) / 1000));
		const two = (n) => String(n).padStart(2, "0");
		const hours = Math.floor(seconds / 3600);
		const text = seconds === 0 ? "over" : hours >= 48 ? Math.floor(hours / 24) + " days left" :
			(hours ? hours + ":" + two(Math.floor(seconds / 60) % 60) : Math.floor(seconds / 60)) + ":" + two(seconds % 60) + " left";
		if (t.textContent !== text) t.textContent = text;
		t.classList.toggle("soon", seconds <= 30);
	}
	readyAll();
}

function localTimes(root = document) {
	for (const t of all("time[data-at]", root)) {
		const at = new Date(Number(t.dataset.at));
		const today = at.toDateString() === new Date().toDateString();
		t.textContent = today ? at.toLocaleTimeString() : at.toLocaleString();
		t.title = at.toISOString();
	}
}
