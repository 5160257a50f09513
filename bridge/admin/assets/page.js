// The approval page: its buttons, its keys, and how it begins.
"use strict";

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

document.addEventListener("change", ({target}) => {
	if (target.id === "pick-all") rows().forEach((row) => { $(".pick", row).checked = target.checked; });
	if (target.id === "pick-all" || target.classList.contains("pick")) countPicked();
	if (target.id === "keys-on") localStorage.setItem("keys", target.checked ? "on" : "off");
	if (target.matches(".call, [name=scope]")) label(target.closest("article"));
});

// What is in sight counts anew when somebody comes back. Nothing listens for that before all
// scripts are loaded: it may happen between two of them.
document.addEventListener("visibilitychange", () => { if (!document.hidden) everythingAppears(); });
window.addEventListener("focus", everythingAppears);
window.addEventListener("resize", () => watchEnds());

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
	const article = out ? null : shownRequest();
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
	if (does === "approve" && $("[data-do=approve]", article).disabled) {
		if (unread(article).length) say("read to the end to approve");
		else say(readLongEnough(article) ? "you cannot approve this" : "read it first: a yes is not taken yet");
		return;
	}
	actions[does](article);
});

// ---- begin

if ($("#login")) atTheDoor();
else if ($("#connected")) finishAccount();
else {
	sessionStorage.removeItem("tried");
	$("#keys-on").checked = localStorage.getItem("keys") !== "off";
	watchSight(document);
	localTimes();
	history.replaceState({view: "list"}, "");
	const article = $("#detail article");
	if (article) {
		arm(article);
		choose(article.dataset.id);
	}
	tick();
	setInterval(tick, 1000);
	listen();
}
