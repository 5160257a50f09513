// When a yes is taken: after what it is about has been in sight, to its end
// where that matters, and for a while. No key or click that was meant for what
// stood there before may allow anything.
"use strict";

// shownAt is when a request or a row of the list came into sight.
const shownAt = new WeakMap();
function appeared(element) {
	shownAt.set(element, performance.now());
	setTimeout(readyAll, waitOf(element) + 20);
}
const waitOf = (element) => Number(element.dataset.wait || 500);
const readLongEnough = (element) => performance.now() - (shownAt.get(element) ?? Infinity) >= waitOf(element);

// A request is in sight as long as anything of it is; a row has been once
// nearly all of it was.
const sight = new IntersectionObserver((entries) => {
	for (const {target, isIntersecting, intersectionRatio} of entries) {
		const row = target.matches(".row");
		if (row ? intersectionRatio >= 0.9 : isIntersecting) {
			if (!shownAt.has(target)) appeared(target);
		} else if (!row) shownAt.delete(target);
	}
	readyAll();
}, {threshold: [0, 0.9]});
const watchSight = (root) => all("article.request, .row", root).forEach((element) => sight.observe(element));

function everythingAppears() {
	all("article.request, .row").filter((element) => shownAt.has(element)).forEach(appeared);
	readyAll();
}

// A mark stands at the end of what must be read, and of each part of it that can
// be folded up. It was in sight when it was between the header and the buttons.
// What has not been looked for yet is not asked for either: a hint that comes and
// goes would move the buttons just when somebody presses one.
const read = new WeakSet(), looked = new WeakSet();
let marks = null;
function watchEnds(article = $("#detail article")) {
	marks?.disconnect();
	if (!article) return;
	const top = Math.max(0, Math.round($("header").getBoundingClientRect().bottom)), bottom = $(".bar", article)?.offsetHeight ?? 0;
	marks = new IntersectionObserver((entries) => {
		looked.add(article);
		if (document.hidden) return;
		for (const {target, isIntersecting} of entries) if (isIntersecting) read.add(target);
		readyAll();
	}, {rootMargin: `-${top}px 0px -${bottom}px 0px`});
	all(".end", article).filter((mark) => !read.has(mark)).forEach((mark) => marks.observe(mark));
}

const unread = (article) => all(".end", article).filter((mark) => !read.has(mark));

// readOn brings the next part into sight that was not.
function readOn(article) {
	const next = unread(article)[0];
	if (!next) return;
	for (let fold = next.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
	const room = innerHeight - ($(".bar", article)?.offsetHeight ?? 0) - $("header").offsetHeight;
	const below = next.getBoundingClientRect().bottom - innerHeight + ($(".bar", article)?.offsetHeight ?? 0);
	if (below < 0) next.scrollIntoView({block: "center"}); // it was scrolled past
	else scrollBy({top: Math.min(below + 16, room * 0.9)});
}

// ready lets a yes be given where it can be.
function ready(button) {
	let off;
	if (button.dataset.do === "many-approve") off = !coveredRows().length;
	else {
		const article = button.closest("article");
		off = busy || !("may" in article.dataset) || !readLongEnough(article) || unread(article).length > 0 || $(".call", article) && !$(".call:checked", article);
	}
	if (button.disabled !== Boolean(off)) button.disabled = Boolean(off);
}

function readyAll() {
	if (out) return;
	all("article.request .yes, [data-do=many-approve]").forEach(ready);
	for (const hint of all(".read-on")) {
		const article = hint.closest("article");
		hint.hidden = !looked.has(article) || unread(article).length === 0;
	}
	explainPicked();
}
