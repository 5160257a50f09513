// The request that is shown, and what is decided on it.
"use strict";

let busy = false;

// shownRequest is the request that a person sees: on a phone the list may stand
// in its place.
function shownRequest() {
	const article = $("#detail article");
	return article?.getClientRects().length ? article : null;
}

function arm(article) {
	if (!article) return;
	watchSight(article.parentElement);
	watchEnds(article);
	localTimes(article);
	label(article);
	tick();
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
	else text.textContent = {forget: "Approve and forget", run: "Approve in this run", session: "Approve for the session"}[scope?.value] ?? "Approve once";
	tick();
}

// load shows a request beside the list, or on a phone in its place.
let loads = 0, loading = false, wanted = "";
async function load(id, {focus = false} = {}) {
	const place = $("#detail"), mine = ++loads;
	if (!place) return;
	wanted = id;
	loading = true;
	choose(id);
	let article;
	try {
		article = $("article", await fetchPage("/r/" + encodeURIComponent(id)));
	} catch (error) {
		say(error.message);
		return;
	} finally {
		if (mine === loads) loading = false;
	}
	if (!article || mine !== loads) return;
	place.replaceChildren(document.adoptNode(article));
	if (focus) view("request");
	arm(article);
	if (!focus) return;
	const headline = $("#headline", article), {top} = headline.getBoundingClientRect();
	headline.focus({preventScroll: true});
	if (top < $("header").getBoundingClientRect().bottom || top > innerHeight / 2) scrollTo({top: 0});
}

// view shows the list or the request, where there is room for one alone. The
// browser's way back leads from the request to the list.
function view(which) {
	if (tab !== "pending" || document.body.dataset.view === which) return;
	document.body.dataset.view = which;
	if (which === "request") history.pushState({view: which}, "");
	watchEnds();
}
window.addEventListener("popstate", (event) => {
	if (tab !== "pending") return;
	document.body.dataset.view = event.state?.view ?? "list";
	watchEnds();
});

// onward shows what comes after a request that was decided: the next that waits,
// or what became of this one.
async function onward(article, text) {
	const id = article.dataset.id, next = nextRow(id);
	article.dataset.status = "decided"; // what the stream tells of it is no news
	$(`#live .row[data-id="${CSS.escape(id)}"]`)?.remove();
	if (tab === "pending" && next) {
		say(text, id);
		await load(next.dataset.id, {focus: true});
	} else {
		say(text);
		await load(id);
	}
	refresh();
}

// follow looks what becomes of calls that were allowed, until all have ended.
function follow(article) {
	const moving = () => all("[data-state]", article).some((one) => ["waiting", "sending"].includes(one.dataset.state));
	if (article.dataset.status !== "approved" || !moving()) return;
	const since = performance.now();
	const timer = setInterval(async () => {
		if (!article.isConnected || performance.now() - since > 300000) return clearInterval(timer);
		try {
			const fresh = $("article", await fetchPage("/r/" + encodeURIComponent(article.dataset.id)));
			const now = all("[data-state]", fresh);
			for (const was of all("[data-state]", article)) {
				const is = now.find((one) => one.dataset.call === was.dataset.call);
				if (is) was.replaceWith(document.adoptNode(is));
			}
			if (moving()) return;
			clearInterval(timer);
			say("All of it has ended: " + all("[data-state]", article).map((one) => one.textContent.trim()).join(", "));
		} catch { /* the next look may find it */ }
	}, 700);
}

const field = (article, name) => $(`[name=${name}]`, article);

// decide sends a verdict on what is shown.
async function decide(article, decision) {
	if (busy) return;
	const noMore = decision === "no-more";
	if (noMore) decision = "deny";
	const body = {decision, digest: article.dataset.digest, reason: field(article, "reason")?.value ?? ""};
	let args;
	if (decision === "approve") {
		if (!("may" in article.dataset) || !readLongEnough(article)) return say("read it first: a yes is not taken yet");
		if (unread(article).length) return say("read to the end to approve");
		const calls = all(".call", article);
		if (calls.length && calls.some((c) => !c.checked)) body.rows = calls.filter((c) => c.checked).map((c) => Number(c.value));
		if (calls.length && body.rows && !body.rows.length) return say("no call is selected");
		const scope = $("[name=scope]:checked", article);
		const editor = $(".editor", article);
		if (editor && !editor.hidden) {
			args = field(article, "args").value;
			clearTimeout(looking); // or it would take away what the bridge says of them
			const problem = showProblem(article);
			if (problem) return pointAt(field(article, "args"), problem.at);
		} else if (scope) {
			body.scope = scope.value === "forget" ? "once" : scope.value;
			if (scope.value === "forget") body.forget = true;
			if (scope.value === "run") body.count = Number(field(article, "count").value);
		}
		if ("typed" in article.dataset) body.typed = field(article, "typed").value;
		if ("typed" in article.dataset && !body.typed && !args) return wants(field(article, "typed"), "type the tool's name to approve");
		if ("reason" in article.dataset && !body.reason.trim()) return wants(field(article, "reason"), "a yes to this call needs a reason");
	}
	if (noMore) body.no_more = true;
	if (field(article, "list")?.checked) body.list = true;
	busy = true;
	article.setAttribute("aria-busy", "true");
	all("[data-do]", article).forEach((b) => { b.disabled = true; });
	say("confirming…");
	// Edited arguments are put in as they were written: reading them here
	// would round their numbers.
	let text = JSON.stringify(body);
	if (args) text = text.slice(0, -1) + ',"args":' + args + "}";
	let done;
	try {
		done = await api("POST", "/api/decide/" + encodeURIComponent(article.dataset.id), text);
	} catch (error) {
		all("[data-do]:not(.yes)", article).forEach((b) => { b.disabled = b.hasAttribute("title"); });
		if (args && ["refused", "invalid"].includes(error.code)) {
			say("not sent: see above the arguments");
			problemSays(article, error.message);
			return;
		}
		say(error.message);
		if (!["settled", "gone", "changed"].includes(error.code)) return;
	} finally {
		busy = false;
		article.removeAttribute("aria-busy");
		tick();
	}
	if (done && !done.kept && done.status !== "pending") return onward(article, `${article.dataset.tool}: ${done.status}` + (done.by ? " by " + done.by : ""));
	if (done) say(done.kept ? "not decided yet: " + done.kept : "your yes counts: " + done.missing);
	await load(article.dataset.id);
	refresh();
}

function wants(input, text) {
	say(text);
	input.focus();
}

// ---- the editor

// showProblem says above the arguments what is wrong with them, and returns it.
function showProblem(article) {
	const problem = jsonProblem(field(article, "args").value);
	problemSays(article, problem ? `Line ${problem.line}, column ${problem.column}: ${problem.what}` : "");
	return problem;
}

function problemSays(article, text) {
	$("#args-error", article).textContent = text;
	field(article, "args").setAttribute("aria-invalid", String(text !== ""));
}

// pointAt puts the cursor where something is wrong.
function pointAt(input, at) {
	input.focus();
	input.setSelectionRange(at, at + 1);
}

let looking;
document.addEventListener("input", ({target}) => {
	if (target.name !== "args") return;
	clearTimeout(looking); // while somebody writes, it is never right
	looking = setTimeout(() => { if (target.isConnected) showProblem(target.closest("article")); }, 500);
});

// ---- what the buttons of a request do

const actions = {
	"deny": (article) => decide(article, "deny"),
	"stop": (article) => decide(article, "stop"),
	"no-more": (article) => decide(article, "no-more"),
	"approve": (article) => decide(article, "approve"),
	"read-on": (article) => readOn(article),
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
	"always": async (article, button) => {
		if (busy || !readLongEnough(article)) return say("read it first: a yes is not taken yet");
		if (unread(article).length) return say("read to the end to approve");
		const body = {digest: article.dataset.digest, revision: button.dataset.revision, reason: field(article, "reason")?.value ?? ""};
		busy = true;
		try {
			await api("POST", "/api/always/" + encodeURIComponent(article.dataset.id), JSON.stringify(body));
		} catch (error) {
			say(error.message);
			return load(article.dataset.id);
		} finally {
			busy = false;
			tick();
		}
		onward(article, `${article.dataset.tool}: approved, and the rule is written`);
	},
	"approve-all": async (article, button) => {
		const same = button.dataset.same.split(" ").map((pair) => ({id: pair.slice(0, pair.indexOf("/")), digest: pair.slice(pair.indexOf("/") + 1)}));
		const reason = field(article, "reason").value;
		if ("reason" in article.dataset && !reason.trim()) return wants(field(article, "reason"), "a yes to these calls needs a reason");
		if (!readLongEnough(article) || unread(article).length) return;
		const said = await settle([{id: article.dataset.id, digest: article.dataset.digest}, ...same], "approve", reason);
		same.forEach(({id}) => $(`#live .row[data-id="${CSS.escape(id)}"]`)?.remove());
		onward(article, said);
	},
};
