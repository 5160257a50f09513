// The approval page's script. The server renders everything that is shown; the
// script brings in what changed, counts down, and sends what a person decides.
// It makes no element out of any text: fragments come from the server, where
// templates escape them, and all else is written as text.
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

let hush;
function say(text) {
	const toast = $("#said");
	toast.textContent = "";
	clearTimeout(hush);
	requestAnimationFrame(() => { toast.textContent = text; });
	hush = setTimeout(() => { toast.textContent = ""; }, 8000);
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
	for (const b of all("article .yes, [data-do=many-approve]")) ready(b);
}

function localTimes(root = document) {
	for (const t of all("time[data-at]", root)) {
		const at = new Date(Number(t.dataset.at));
		const today = at.toDateString() === new Date().toDateString();
		t.textContent = today ? at.toLocaleTimeString() : at.toLocaleString();
		t.title = at.toISOString();
	}
}

// ---- when a yes is taken

// shownAt is when something came into sight: no key or click that was meant
// for what stood there before may allow it.
const shownAt = new WeakMap();
const appeared = (element) => shownAt.set(element, performance.now());
const readLongEnough = (element) => performance.now() - (shownAt.get(element) ?? Infinity) >= Number(element.dataset.wait || 500);

// ready lets a yes be given where it can be.
function ready(button) {
	let off;
	if (button.dataset.do === "many-approve") {
		const picked = pickedRows();
		off = picked.length === 0 || !picked.every((row) => readLongEnough(row));
	} else {
		const article = button.closest("article");
		off = !article || busy || !("may" in article.dataset) || !readLongEnough(article) || $(".call", article) && !$(".call:checked", article);
	}
	if (button.disabled !== Boolean(off)) button.disabled = Boolean(off);
}

function everythingAppears() {
	all("article, .row").forEach(appeared);
}
document.addEventListener("visibilitychange", () => { if (!document.hidden) everythingAppears(); });
window.addEventListener("focus", everythingAppears);

// ---- the request that is shown

let busy = false;

function arm(article) {
	if (!article) return;
	appeared(article);
	localTimes(article);
	label(article);
	tick();
	setTimeout(tick, Number(article.dataset.wait || 500) + 20);
	follow(article);
}

// label says on the button what a yes will do.
function label(article) {
	const text = $("[data-do=approve] .label", article);
	if (!text) return;
	const calls = all(".call", article), sent = calls.filter((c) => c.checked).length;
	const scope = $("[name=scope]:checked", article);
	if (calls.length) text.textContent = `Approve ${sent} of ${calls.length} calls`;
	else if (!$(".editor", article)?.hidden) text.textContent = "Approve as edited";
	else text.textContent = scope && scope.value !== "once" ? "Approve for the session" : "Approve once";
	tick();
}

// load shows a request beside the list.
async function load(id, {focus = false} = {}) {
	const place = $("#detail");
	if (!place) return;
	choose(id);
	let article;
	try {
		article = $("article", await fetchPage("/r/" + encodeURIComponent(id)));
	} catch (error) {
		say(error.message);
		return;
	}
	if (!article) return;
	place.replaceChildren(document.adoptNode(article));
	arm(article);
	if (focus) {
		$("#headline", article)?.focus({preventScroll: true});
		if (matchMedia("(max-width: 900px)").matches) article.scrollIntoView();
	}
}

// follow looks what becomes of calls that were allowed, until all have ended.
function follow(article) {
	const open = article.dataset.status === "approved" && all("[data-state]", article).some((li) => ["waiting", "sending"].includes(li.dataset.state));
	if (!open) return;
	const since = performance.now();
	const timer = setInterval(async () => {
		if (!article.isConnected || performance.now() - since > 300000) return clearInterval(timer);
		try {
			const fresh = $("article", await fetchPage("/r/" + encodeURIComponent(article.dataset.id)));
			const states = $(".states", article), now = $(".states", fresh);
			if (states && now) states.replaceWith(document.adoptNode(now));
			if (!all("[data-state]", article).some((li) => ["waiting", "sending"].includes(li.dataset.state))) {
				clearInterval(timer);
				say(all("[data-state]", article).map((li) => li.textContent).join(", "));
			}
		} catch { /* the next look may find it */ }
	}, 700);
}

const field = (article, name) => $(`[name=${name}]`, article);

// decide sends a verdict on what is shown.
async function decide(article, decision) {
	if (busy) return;
	const body = {decision, digest: article.dataset.digest, reason: field(article, "reason")?.value ?? ""};
	let args;
	if (decision === "approve") {
		if (!("may" in article.dataset) || !readLongEnough(article)) return say("read it first: a yes is not taken yet");
		const calls = all(".call", article);
		if (calls.length && calls.some((c) => !c.checked)) body.rows = calls.filter((c) => c.checked).map((c) => Number(c.value));
		if (calls.length && body.rows && !body.rows.length) return say("no call is selected");
		const scope = $("[name=scope]:checked", article);
		const editor = $(".editor", article);
		if (editor && !editor.hidden) {
			args = field(article, "args").value;
			if (!validArgs(article)) return field(article, "args").focus();
		} else if (scope) body.scope = scope.value;
		if ("typed" in article.dataset) body.typed = field(article, "typed").value;
		if ("typed" in article.dataset && !body.typed && !args) return wants(field(article, "typed"), "type the tool's name to approve");
		if ("reason" in article.dataset && !body.reason.trim()) return wants(field(article, "reason"), "a yes to this call needs a reason");
	}
	busy = true;
	article.setAttribute("aria-busy", "true");
	all("[data-do]", article).forEach((b) => { b.disabled = true; });
	say("confirming…");
	// Edited arguments are put in as they were written: reading them here
	// would round their numbers.
	let text = JSON.stringify(body);
	if (args) text = text.slice(0, -1) + ',"args":' + args + "}";
	try {
		const done = await api("POST", "/api/decide/" + encodeURIComponent(article.dataset.id), text);
		say(done.kept ? "not decided yet: " + done.kept : done.status === "pending" ? "your yes counts: " + done.missing : done.status + (done.by ? " by " + done.by : ""));
	} catch (error) {
		say(error.message);
		if (!["settled", "gone", "changed"].includes(error.code)) {
			all("[data-do]:not(.yes)", article).forEach((b) => { b.disabled = b.hasAttribute("title"); });
			return;
		}
	} finally {
		busy = false;
		article.removeAttribute("aria-busy");
		tick();
	}
	await load(article.dataset.id);
	refresh();
}

function wants(input, text) {
	say(text);
	input.focus();
}

function validArgs(article) {
	const error = $("#args-error", article);
	error.textContent = "";
	try {
		const value = JSON.parse(field(article, "args").value);
		if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("the arguments are one JSON object");
		return true;
	} catch (e) {
		error.textContent = e.message;
		return false;
	}
}

// settle decides on several requests, one after the other, and says how many.
async function settle(rows, decision, reason) {
	let done = 0, trouble = "";
	for (const {id, digest} of rows) {
		try {
			const answer = await api("POST", "/api/decide/" + encodeURIComponent(id), {decision, digest, reason});
			if (answer.kept) trouble = answer.kept;
			else done++;
		} catch (error) {
			trouble = error.message;
		}
	}
	say(`${done} of ${rows.length} ${decision === "approve" ? "approved" : "denied"}` + (trouble ? "; " + trouble : ""));
	refresh();
}

// ---- the list

const rows = () => all("#live .row");
const pickedRows = () => rows().filter((row) => $(".pick", row).checked);

function choose(id) {
	for (const row of rows()) {
		row.classList.toggle("chosen", row.dataset.id === id);
		const link = $(".open", row);
		if (row.dataset.id === id) {
			link.setAttribute("aria-current", "true");
			row.scrollIntoView({block: "nearest"});
		} else link.removeAttribute("aria-current");
	}
}

function step(by) {
	const list = rows();
	if (!list.length) return;
	const at = list.findIndex((row) => row.classList.contains("chosen"));
	const next = list[at < 0 ? 0 : Math.min(list.length - 1, Math.max(0, at + by))];
	load(next.dataset.id, {focus: true});
}

function countPicked() {
	const n = pickedRows().length;
	const label = $("#picked");
	if (!label) return;
	label.textContent = n ? n + " selected" : "Select all";
	for (const b of all("[data-do=many-deny]")) b.disabled = n === 0;
	tick();
}

// merge brings a fresh list in. Rows that are still there stay where they are:
// what a person has ticked, how long it has been in sight, and a click that is
// just being made are not lost.
function merge(live, now) {
	const list = $(".list", live), fresh = $(".list", now);
	if (!list || !fresh) {
		all(".row, article", now).forEach(appeared);
		live.replaceChildren(...[...now.childNodes].map((node) => document.adoptNode(node)));
		return;
	}
	const old = new Map(rows().map((row) => [row.dataset.id, row]));
	let last = null;
	for (const row of all(".row", fresh)) {
		const before = old.get(row.dataset.id);
		old.delete(row.dataset.id);
		if (before && before.dataset.digest === row.dataset.digest && before.dataset.votes === row.dataset.votes) {
			last = before;
			continue;
		}
		appeared(row);
		row.classList.add("new");
		document.adoptNode(row);
		if (before) {
			$(".pick", row).checked = $(".pick", before).checked;
			before.replaceWith(row);
		} else if (last) last.after(row);
		else list.prepend(row);
		last = row;
	}
	for (const gone of old.values()) gone.remove();
}

// refresh brings in what has changed; calls while it does so are one more.
let refreshing = null, again = false;
function refresh() {
	if (refreshing) {
		again = true;
		return refreshing;
	}
	const live = $("#live");
	if (!live) return Promise.resolve();
	refreshing = (async () => {
		try {
			const fresh = await fetchPage(location.pathname + location.search);
			const now = $("#live", fresh);
			const open = $("#open", fresh);
			if (open) count(open.textContent);
			if (!now) return;
			merge(live, now);
			localTimes(live);
			countPicked();
			const shown = $("#detail article");
			if (tab === "pending") {
				if (!shown && rows().length) load(rows()[0].dataset.id);
				else if (shown) choose(shown.dataset.id);
			}
			tick();
		} catch { /* the stream tells when the bridge is back */ } finally {
			refreshing = null;
			if (again) {
				again = false;
				refresh();
			}
		}
	})();
	return refreshing;
}

function count(text) {
	const n = $("#open");
	if (n) n.textContent = text;
	document.title = document.title.replace(/^\(\d+\) /, "");
	if (text !== "0") document.title = `(${text}) ` + document.title;
}

// ---- the stream of events

let stream = null;
function listen() {
	stream = new EventSource("/api/events");
	const live = $("#live")?.dataset.live;
	const link = $("#link");
	stream.onopen = () => {
		link.classList.add("on");
		link.title = "connected: what is new appears by itself";
		banner("");
	};
	stream.onerror = () => {
		link.classList.remove("on");
		link.title = "not connected";
		banner("Not connected to the bridge. Trying again.");
		if (stream.readyState === EventSource.CLOSED) { // refused: is it us?
			stream.close();
			api("GET", "/api/me").catch(() => {}).then(() => { if (!out) setTimeout(listen, 5000); });
		}
	};
	const on = (type, does) => stream.addEventListener(type, (message) => {
		const event = JSON.parse(message.data);
		ahead = Date.now() - Date.parse(event.now);
		does(event);
	});
	on("hello", () => {
		begun = performance.now();
		refresh();
		const article = $("#detail article");
		if (article && article.dataset.status === "pending") look(article.dataset.id);
	});
	on("pending", (event) => {
		if (tab === "pending") refresh();
		else counted();
		const article = $("#detail article");
		if (article?.dataset.id === event.id) {
			const votes = $(".votes strong", article);
			if (votes && event.missing) votes.textContent = event.missing;
			look(event.id);
		} else if (performance.now() - begun > 1000) say(`new request: ${event.risk} risk, ${event.tool}`);
	});
	on("settled", (event) => {
		if (tab === "pending") refresh();
		else counted();
		const article = $("#detail article");
		if (article?.dataset.id === event.id && article.dataset.status === "pending" && !busy) {
			say(`${event.status}${event.by ? " by " + event.by : ""}`);
			load(event.id);
		}
	});
	on("runs", () => { if (live === "runs") refresh(); });
	on("config", () => {
		held();
		if (live === "config") refresh();
	});
	on("grants", () => { if (live === "grants") refresh(); });
	on("tools", () => { if (live === "tools" || live === "servers") refresh(); });
}
let begun = 0;

// look loads a request again if it is not the one that is shown any more:
// calls of its loop may have come to it, or it was settled meanwhile. What a
// model says of it comes in where models speak, and disturbs nothing else.
async function look(id) {
	try {
		const now = await api("GET", "/api/pending/" + encodeURIComponent(id));
		const article = $("#detail article");
		if (article?.dataset.id !== id || busy) return;
		if (now.digest !== article.dataset.digest || now.status !== article.dataset.status) return load(id);
		if (!now.description.model.says || "says" in article.dataset) return;
		const fresh = $(".model", await fetchPage("/r/" + encodeURIComponent(id)));
		if (!fresh || !article.isConnected) return;
		$(".model", article).replaceWith(document.adoptNode(fresh));
		article.dataset.says = "";
	} catch { /* it is shown as it was */ }
}

// held shows on every tab whether a changed configuration waits.
async function held() {
	try {
		$("#held").hidden = !(await api("GET", "/api/config")).held;
	} catch { /* the next page that is loaded says it */ }
}

// counted keeps the number at the tab right on the other pages.
async function counted() {
	try {
		count(String((await api("GET", "/api/pending")).pending.length));
	} catch { /* the next event brings it */ }
}

// ---- what buttons and keys do

const actions = {
	"deny": (article) => decide(article, "deny"),
	"stop": (article) => decide(article, "stop"),
	"approve": (article) => decide(article, "approve"),
	"why": (article) => {
		const reason = field(article, "reason");
		if (reason.value.trim()) return decide(article, "deny");
		wants(reason, "write why, then press Enter to deny");
	},
	"edit": (article) => {
		const editor = $(".editor", article);
		if (!editor || $("[data-do=edit]", article).disabled) return say($("[data-do=edit]", article)?.title || "this cannot be edited");
		editor.hidden = !editor.hidden;
		label(article);
		if (!editor.hidden) field(article, "args").focus();
	},
	"approve-all": (article, button) => {
		const same = button.dataset.same.split(" ").map((pair) => ({id: pair.slice(0, pair.indexOf("/")), digest: pair.slice(pair.indexOf("/") + 1)}));
		const reason = field(article, "reason").value;
		if ("reason" in article.dataset && !reason.trim()) return wants(field(article, "reason"), "a yes to these calls needs a reason");
		if (!readLongEnough(article)) return;
		settle([{id: article.dataset.id, digest: article.dataset.digest}, ...same], "approve", reason).then(() => load(article.dataset.id));
	},
};

const elsewhere = {
	"help": () => $("#help").showModal(),
	"close-help": () => $("#help").close(),
	"logout": async () => {
		try {
			await api("POST", "/api/logout", {});
		} catch { /* then the cookie was not good any more */ }
		localStorage.removeItem(secretKey);
		location.assign("/login");
	},
	"many-deny": () => settle(pickedRows().map((r) => r.dataset), "deny", ""),
	"many-approve": () => {
		const picked = pickedRows(), plain = picked.filter((row) => "plain" in row.dataset);
		if (plain.length < picked.length) say(`${picked.length - plain.length} need more than a yes: open them`);
		if (plain.length && plain.every(readLongEnough)) settle(plain.map((r) => r.dataset), "approve", "");
	},
	"sign-on": () => signOn(),
	"stop-run": (b) => act(b, "POST", `/api/runs/${encodeURIComponent(b.dataset.id)}/stop`, {}, "stopped"),
	"resume-run": (b) => act(b, "POST", `/api/runs/${encodeURIComponent(b.dataset.id)}/resume`, {}, "resumed"),
	"accept-tool": (b) => act(b, "POST", "/api/tools/accept", { server: b.dataset.server, tool: b.dataset.tool, digest: b.dataset.digest }, "accepted"),
	"log-in": (b) => logIn(b),
	"block-tool": (b) => act(b, "POST", "/api/tools/block", { server: b.dataset.server, tool: b.dataset.tool, digest: b.dataset.digest }, "blocked"),
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

document.addEventListener("click", (event) => {
	const button = event.target.closest("button[data-do]");
	if (button && !button.disabled) {
		const article = button.closest("article.request");
		if (article) actions[button.dataset.do]?.(article, button);
		else elsewhere[button.dataset.do]?.(button);
		return;
	}
	const open = event.target.closest(".row .open");
	if (open && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
		event.preventDefault();
		load(open.closest(".row").dataset.id, {focus: true});
	}
});

document.addEventListener("change", async (event) => {
	const to = event.target;
	if (to.id === "pick-all") rows().forEach((row) => { $(".pick", row).checked = to.checked; });
	if (to.id === "pick-all" || to.classList.contains("pick")) countPicked();
	if (to.id === "keys-on") localStorage.setItem("keys", to.checked ? "on" : "off");
	if (to.matches(".call, [name=scope]")) label(to.closest("article"));
	if (to.matches("select[data-do=tighten]")) {
		try {
			await api("POST", `/api/sessions/${encodeURIComponent(to.dataset.id)}/profile`, {profile: to.value});
			say(to.value ? "tightened to " + to.value : "taken back");
		} catch (error) {
			say(error.message);
		}
	}
});

document.addEventListener("input", (event) => {
	if (event.target.name === "args") validArgs(event.target.closest("article"));
});

// keys: one letter each, and not in a field, with another key, or held down.
document.addEventListener("keydown", (event) => {
	const target = event.target instanceof Element ? event.target : document.body;
	if (event.key === "Enter" && target.name === "reason" && !event.shiftKey && !event.isComposing) {
		event.preventDefault();
		const article = target.closest("article");
		if (target.value.trim() && !("reason" in article.dataset)) decide(article, "deny");
		else say("press a button, or leave the field and press a key");
		return;
	}
	if (event.key === "Escape" && target.matches("input, textarea")) {
		target.blur();
		return;
	}
	if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || $("dialog[open]") || target.matches("input:not([type=checkbox], [type=radio]), textarea, select")) return;
	if (event.key === "?") {
		event.preventDefault();
		return elsewhere.help();
	}
	if (localStorage.getItem("keys") === "off") return;
	const moves = {j: 1, ArrowDown: 1, k: -1, ArrowUp: -1};
	if (event.key in moves && tab === "pending" && target.type !== "radio") {
		event.preventDefault();
		return step(moves[event.key]);
	}
	const article = out ? null : $("#detail article");
	const does = {a: "approve", d: "deny", r: "why", x: "stop", e: "edit", v: "details"}[event.key];
	if (!article || !does) return;
	event.preventDefault();
	if (does === "details") {
		const folded = all("details", article), open = folded.some((d) => !d.open);
		folded.forEach((d) => { d.open = open; });
		return;
	}
	if (article.dataset.status !== "pending" || !$(".decide", article)) return;
	if (performance.now() - (shownAt.get(article) ?? Infinity) < 500) return; // it was meant for what stood here before
	if (does === "approve" && $("[data-do=approve]", article).disabled) return say(readLongEnough(article) ? "you cannot approve this" : "read it first: a yes is not taken yet");
	actions[does](article);
});

document.addEventListener("submit", async (event) => {
	const form = event.target;
	if (form.matches(".filter")) return;
	event.preventDefault();
	if (form.id === "login") signIn({token: $("#token").value});
	if (form.id === "confirm") {
		const problem = $("#confirm-error"), reason = $("#confirm-reason");
		const button = event.submitter ?? $("button", form), reject = button.value === "reject";
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
	if (form.id === "policy") {
		const problem = $("#policy-error");
		problem.textContent = "";
		try {
			await api("PUT", "/api/profiles", {text: $("#policy-text").value, revision: form.dataset.revision});
			location.reload();
		} catch (error) {
			problem.textContent = error.message;
		}
	}
});

// ---- signing in

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

// ---- begin

if ($("#login")) atTheDoor();
else {
	sessionStorage.removeItem("tried");
	$("#keys-on").checked = localStorage.getItem("keys") !== "off";
	everythingAppears();
	localTimes();
	const article = $("#detail article");
	if (article) {
		arm(article);
		choose(article.dataset.id);
	}
	tick();
	setInterval(tick, 1000);
	listen();
}
