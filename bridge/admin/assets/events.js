// What the bridge tells while the page is open.
"use strict";

let stream = null;
function listen() {
	stream = new EventSource("/api/events");
	const live = $("#live")?.dataset.live;
	const link = $("#link");
	stream.onopen = () => {
		link.classList.add("on");
		link.title = "connected: what is new appears by itself";
		if (!$("#said").textContent) say("connected: what is new appears by itself");
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
		} else if (performance.now() - begun > 1000) say(`new request: ${event.risk} risk, ${event.tool}`, tab === "pending" ? "" : event.id);
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
