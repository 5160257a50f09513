// What the buttons and forms of the tabs do, besides those of a request.
"use strict";

const elsewhere = {
	"help": () => $("#help").showModal(),
	"close-help": () => $("#help").close(),
	"menu": (b) => b.setAttribute("aria-expanded", String($("header").classList.toggle("open"))),
	"list": () => history.back(),
	"logout": async () => {
		try {
			await api("POST", "/api/logout", {});
		} catch { /* then the cookie was not good any more */ }
		localStorage.removeItem(secretKey);
		location.assign("/login");
	},
	"many-deny": () => settle(pickedRows().map((r) => r.dataset), "deny", ""),
	"many-approve": () => settle(coveredRows().map((r) => r.dataset), "approve", ""),
	"sign-on": () => signOn(),
	"stop-run": (b) => act(b, "POST", `/api/runs/${encodeURIComponent(b.dataset.id)}/stop`, {}, "stopped"),
	"resume-run": (b) => act(b, "POST", `/api/runs/${encodeURIComponent(b.dataset.id)}/resume`, {}, "resumed"),
	"accept-tool": (b) => act(b, "POST", "/api/tools/accept", { server: b.dataset.server, tool: b.dataset.tool, digest: b.dataset.digest }, "accepted"),
	"log-in": (b) => logIn(b),
	connect: (b) => connectAccount(b),
	disconnect: (b) => disconnectAccount(b),
	"block-tool": (b) => act(b, "POST", "/api/tools/block", { server: b.dataset.server, tool: b.dataset.tool, digest: b.dataset.digest }, "blocked"),
	"try-policy": (b) => tryProfiles(b),
	"revoke": (b) => act(b, "DELETE", "/api/grants/" + encodeURIComponent(b.dataset.id), undefined, "revoked"),
};

// logIn puts the link of a server's login in the place of the button: a window
// that a script opens would be blocked.
async function logIn(button) {
	button.disabled = true;
	try {
		const begun = await api("POST", "/api/servers/login", {server: button.dataset.server});
		const link = document.createElement("a");
		link.href = begun.link;
		link.target = "_blank";
		link.rel = "noopener noreferrer";
		link.textContent = "Go to the login";
		button.replaceWith(link);
		link.focus();
		say("the login is ready: it comes back to the machine that the bridge runs on");
	} catch (error) {
		button.disabled = false;
		say(error.message);
	}
}

async function act(button, method, path, body, done) {
	button.disabled = true;
	try {
		await api(method, path, body);
		say(done);
	} catch (error) {
		button.disabled = false;
		say(error.message);
	}
	refresh();
}

// ---- forms

async function confirmConfig(form, button) {
	const problem = $("#confirm-error"), reason = $("#confirm-reason"), reject = button.value === "reject";
	problem.textContent = "";
	if (!reject && "reason" in form.dataset && !reason.value.trim()) {
		problem.textContent = "this change needs a reason";
		return reason.focus();
	}
	button.disabled = true;
	try {
		await api("POST", reject ? "/api/config/reject" : "/api/config/confirm", {digest: form.dataset.digest, reason: reason.value});
		say(reject ? "rejected: the old one goes on" : "confirmed: the bridges that hold it take it over");
		refresh();
		held();
	} catch (error) {
		button.disabled = false;
		problem.textContent = error.message;
	}
}

// tryProfiles shows what the text would have changed of the calls of the last days. It
// saves nothing.
async function tryProfiles(button) {
	const problem = $("#policy-error"), said = $("#policy-says"), tried = $("#policy-tried"), text = $("#policy-text");
	problem.textContent = tried.textContent = "";
	tried.hidden = true;
	text.setAttribute("aria-invalid", "false");
	button.disabled = true;
	said.textContent = "Looking at the calls of the last days…";
	try {
		const found = await api("POST", "/api/profiles/try", {text: text.value});
		const day = (n) => n.toLocaleString(undefined, {maximumFractionDigits: 1});
		const unknown = found.unknown ? `, ${found.unknown} cannot be known` : "";
		said.textContent = `Of the last ${found.days} days' ${found.partial ? "latest " : ""}${found.calls} calls: ${found.looser} looser, ${found.stricter} stricter${unknown}. Questions a day: ${day(found.questions_before)} before, ${day(found.questions_after)} with it. Nothing is saved.`;
		tried.textContent = found.text;
		tried.hidden = found.calls === 0;
	} catch (error) {
		said.textContent = "";
		problem.textContent = "Not tried: " + error.message;
		text.setAttribute("aria-invalid", "true");
	} finally {
		button.disabled = false;
	}
}

// saveProfiles saves the text and says beside the button what it did. What holds
// now is shown above; the text and the place in it stay.
async function saveProfiles(form, button) {
	const problem = $("#policy-error"), done = $("#policy-says"), text = $("#policy-text");
	problem.textContent = done.textContent = "";
	text.setAttribute("aria-invalid", "false");
	if (text.value === text.defaultValue) {
		done.textContent = "Nothing to save: the text is as it was.";
		return;
	}
	button.disabled = true;
	done.textContent = "Saving…";
	try {
		await api("PUT", "/api/profiles", {text: text.value, revision: form.dataset.revision});
		const fresh = await fetchPage("/profiles");
		form.dataset.revision = $("#policy", fresh).dataset.revision;
		text.defaultValue = text.value;
		$("#profiles").replaceWith(document.adoptNode($("#profiles", fresh)));
		done.textContent = `Saved at ${new Date().toLocaleTimeString()}. It holds for every call from now on.`;
	} catch (error) {
		done.textContent = "";
		problem.textContent = "Not saved: " + error.message;
		text.setAttribute("aria-invalid", "true");
	} finally {
		button.disabled = false;
	}
}

document.addEventListener("submit", (event) => {
	const form = event.target;
	if (form.matches(".filter")) return;
	event.preventDefault();
	const button = event.submitter ?? $("button", form);
	if (form.id === "login") signIn({token: $("#token").value});
	if (form.id === "confirm") confirmConfig(form, button);
	if (form.id === "policy") saveProfiles(form, button);
});

document.addEventListener("change", async ({target}) => {
	if (!target.matches("select[data-do=tighten]")) return;
	try {
		await api("POST", `/api/sessions/${encodeURIComponent(target.dataset.id)}/profile`, {profile: target.value});
		say(target.value ? "tightened to " + target.value : "taken back");
	} catch (error) {
		say(error.message);
	}
});
