// The list of what waits, and what is decided on several at once.
"use strict";

const rows = () => all("#live .row");
const pickedRows = () => rows().filter((row) => $(".pick", row).checked);

// coveredRows are the picked ones that a yes to all of them is for: what needs
// no more than a yes, is not high, and was in sight.
const coveredRows = () => pickedRows().filter((row) => "plain" in row.dataset && readLongEnough(row));

// nextRow is the row after a request's, or else the one before it.
function nextRow(id) {
	const list = rows(), at = list.findIndex((row) => row.dataset.id === id);
	return list[at + 1] ?? list[at - 1] ?? null;
}

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

// explainPicked says beside the buttons which of the picked ones a yes is not
// for. It stays as long as it is so.
function explainPicked() {
	const place = $("#many-says");
	if (!place) return;
	const picked = pickedRows(), open = picked.filter((row) => !("plain" in row.dataset)).length;
	const unseen = picked.filter((row) => "plain" in row.dataset && !shownAt.has(row)).length;
	const says = [];
	if (open) says.push(`${open} of them ${open === 1 ? "needs" : "need"} more than this yes: open ${open === 1 ? "it" : "each"}.`);
	if (unseen) says.push(`${unseen} ${unseen === 1 ? "was" : "were"} not in sight yet: scroll there first.`);
	const text = says.join(" ");
	if (place.textContent !== text) place.textContent = text;
}

// settle decides on several requests, one after the other, and says how many.
async function settle(asked, decision, reason) {
	let done = 0, trouble = "";
	for (const {id, digest} of asked) {
		try {
			const answer = await api("POST", "/api/decide/" + encodeURIComponent(id), {decision, digest, reason});
			if (answer.kept) trouble = answer.kept;
			else done++;
		} catch (error) {
			trouble = error.message;
		}
	}
	const text = `${done} of ${asked.length} ${decision === "approve" ? "approved" : "denied"}` + (trouble ? "; " + trouble : "");
	say(text);
	refresh();
	return text;
}

// merge brings a fresh list in. Rows that are still there stay where they are:
// what a person has ticked, how long it has been in sight, and a click that is
// just being made are not lost.
function merge(live, now) {
	const list = $(".list", live), fresh = $(".list", now);
	if (!list || !fresh) {
		live.replaceChildren(...[...now.childNodes].map((node) => document.adoptNode(node)));
		watchSight(live);
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
		row.classList.add("new");
		document.adoptNode(row);
		if (before) {
			$(".pick", row).checked = $(".pick", before).checked;
			before.replaceWith(row);
		} else if (last) last.after(row);
		else list.prepend(row);
		sight.observe(row);
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
			if (tab === "pending") {
				const shown = $("#detail article");
				// What a person has opened meanwhile is on its way.
				if (!shown && !loading && rows().length) load(rows()[0].dataset.id);
				else if (shown) choose(wanted || shown.dataset.id);
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
