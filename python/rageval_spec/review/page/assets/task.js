// The task that is shown: its question, the answer with its claims, the reference, the contexts, and what the judge said.

const LONG_ANSWER = 6000;
const LONG_CONTEXT = [1500, 450];
const FIRST_CONTEXTS = 3;
const narrow = window.matchMedia("(max-width: 900px)");

/** What is shown: the task, the judgement that keys answer, and the time that the reader spent on it. */
const shown = {
  at: -1, task: null, slot: 0, isTold: false, since: 0,
  /** The seconds since they were last asked for; a long pause counts only in part. */
  spend() {
    const now = Date.now();
    const seconds = Math.min((now - this.since) / 1000, LONGEST_PAUSE);
    this.since = now;
    return Math.round(seconds);
  },
};

function drawTask() {
  const { task, at } = shown;
  return el("article", { class: "task", "aria-labelledby": "task-title" },
    el("p", { class: "crumbs", id: "crumbs" }, drawCrumbs()),
    el("h1", { id: "task-title", tabindex: "-1", class: "prose", dir: "auto" }, task.question || "(The question is empty.)"),
    el("section", { class: `answer ${sheet.subject}`, "aria-label": subject.title }, el("h2", {}, subject.title, sheet.subject === "documents" && drawDocumentName(task)),
      sheet.subject === "nuggets" ? el("div", { id: "nuggets" }) : drawAnswer(task)),
    task.references.length > 0 && el("section", { class: "reference", "aria-label": "Reference" },
      el("h2", {}, task.references.length > 1 ? "Reference answers" : "Reference answer"),
      task.references.map((text) => foldLong(el("p", { class: "prose", dir: "auto" }, text), text, "reference"))),
    (task.contexts.length > 0 || sheet.subject === "answers") && el("section", { class: "contexts", "aria-label": "Contexts" }, drawContexts(task)),
    sheet.subject !== "nuggets" && el("section", { class: "told", id: "told", "aria-label": "The judge's opinion" }, drawTold(at, task)));
}

function drawDocumentName(task) {
  return [" ", name(task.system, { class: "name muted" })];
}

function drawCrumbs() {
  const { at } = shown;
  const { sign, word, kind } = STATES[work.states[at]];
  const several = new Set(sheet.tasks.map((task) => task.dataset)).size > 1;
  return [el("span", { class: "strong" }, `Task ${(work.order.indexOf(at) + 1).toLocaleString("en")} of ${sheet.tasks.length.toLocaleString("en")}`),
    several && name(sheet.tasks[at].dataset), name(sheet.tasks[at].query_id),
    el("span", { class: `chip ${kind}` }, `${sign} ${word}`),
    (work.filter !== "all" || work.search) && el("span", { class: "chip" }, "filtered ",
      el("button", { type: "button", class: "quiet small", on: { click: clearFilter } }, "show all"))];
}

function drawAnswer(task) {
  if (!task.answer.trim()) return el("p", { class: "failure" }, "The answer is empty.");
  const text = el("p", { class: "prose", dir: "auto", id: "answer" });
  const node = foldLong(text, task.answer, "answer", LONG_ANSWER);
  markAnswer(text, task);
  return node;
}

/** The claims of the active criterion that have a place in the answer, marked with their verdicts so far. */
function markAnswer(text, task) {
  const active = task.slots[shown.slot];
  const entry = entryOf(shown.at);
  const first = active?.claim != null ? active.criterion : task.slots.find((slot) => slot.claim !== null)?.criterion;
  const marks = task.slots.map((slot, place) => ({ slot, place, claim: findClaim(task, slot) }))
    .filter(({ slot, claim }) => slot.claim !== null && slot.criterion === first && claim?.part === "answer" && claim.end > claim.start)
    .sort((a, b) => a.claim.start - b.claim.start || b.claim.end - a.claim.end);
  if (!marks.length) return refill(text, task.answer);
  const places = countPoints(task.answer);
  const pieces = [];
  let at = 0;
  for (const { slot, place, claim } of marks) {
    if (claim.end >= places.length) continue;
    const [from, to] = [Math.max(at, places[claim.start]), places[claim.end]];
    if (to <= from) continue;
    const label = entry.labels[slot.key];
    const { kind, sign } = label ? optionOf(slot, label.value) : { kind: "todo", sign: String(slot.claim + 1) };
    pieces.push(task.answer.slice(at, from), el("mark", { class: `claim ${kind} ${slot === active ? "active" : ""}`,
      "data-claim": slot.claim, on: { click: () => chooseSlot(place) } },
      el("span", { class: "sign", "aria-hidden": "true" }, sign), task.answer.slice(from, to)));
    at = to;
  }
  return refill(text, pieces, task.answer.slice(at));
}

function findClaim(task, slot) {
  const criterion = criterionOf(slot);
  return slot.claim === null ? null : task.claims.find((claim) => claim.metric === criterion.name && claim.number === slot.claim);
}

/** The places of the contexts that the answer cites, by number or id. */
function listCited(task) {
  const cited = new Set();
  for (const [, inside] of task.answer.matchAll(/\[([^[\]]{1,80})\]/g)) {
    for (const piece of inside.split(/[,;]/)) {
      const text = piece.trim();
      const named = task.contexts.findIndex((one) => one.doc_id !== null && one.doc_id === text);
      const number = /^\d{1,4}$/.test(text) ? Number(text) - 1 : -1;
      const at = named >= 0 ? named : number;
      if (at >= 0 && at < task.contexts.length) cited.add(at);
    }
  }
  return cited;
}

function drawContexts(task) {
  if (!task.contexts.length) return [el("h2", {}, "Contexts"), el("p", { class: "muted" }, "The system answered without contexts.")];
  const cited = listCited(task);
  const isFirst = (at) => (cited.size ? cited.has(at) : at < FIRST_CONTEXTS);
  const places = task.contexts.map((_, at) => at);
  const [first, others] = [places.filter(isFirst), places.filter((at) => !isFirst(at))];
  const draw = (list) => el("ol", {}, list.map((at) => drawContext(task.contexts[at], at)));
  const more = cited.size ? `${formatCount(others.length, "context")} that the answer does not cite`
    : `${formatCount(others.length, "more context", "more contexts")}`;
  return [el("h2", {}, cited.size ? "Contexts that the answer cites" : "Contexts that the answer could use",
    el("span", { class: "tinted small", id: "tinted", hidden: true }, " · words of the claim are tinted")), draw(first),
    others.length > 0 && el("details", { class: "others" }, el("summary", {}, more), draw(others))];
}

function drawContext({ text, doc_id: id }, at) {
  const node = text.trim() ? el("p", { class: "prose", dir: "auto" }, text) : el("p", { class: "muted" }, "This context is empty.");
  return el("li", { class: "document whole" },
    el("div", { class: "about" }, el("span", { class: "rank" }, spoken("Context "), String(at + 1)), id !== null && name(id, { class: "name muted" })),
    foldLong(node, text, "context", LONG_CONTEXT[Number(narrow.matches)]));
}

function openContexts() {
  const folds = [...document.querySelectorAll(".contexts details")];
  const isOpen = folds.every((fold) => fold.open);
  for (const fold of folds) fold.open = !isOpen;
}

/** Words of the active claim are tinted in the contexts, where the browser can do it without touching the text. */
function tintWords() {
  if (!window.Highlight || !CSS.highlights) return;
  CSS.highlights.delete("words");
  const note = document.getElementById("tinted");
  if (note) note.hidden = true;
  const slot = shown.task?.slots[shown.slot];
  const claim = slot && findClaim(shown.task, slot);
  if (!claim) return;
  const words = listWords(claim.text);
  if (!words.length) return;
  const rule = new RegExp(words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|"), "giu");
  const ranges = [];
  for (const text of document.querySelectorAll(".contexts .prose")) {
    const node = text.firstChild;
    for (const match of node?.data?.matchAll(rule) ?? []) {
      if (/[\p{L}\p{N}]/u.test(node.data[match.index - 1] ?? " ") && !/\p{Script=Han}/u.test(match[0])) continue;
      const range = new Range();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      ranges.push(range);
    }
  }
  CSS.highlights.set("words", new Highlight(...ranges));
  if (note) note.hidden = ranges.length === 0;
}

/** The words that carry the sense of a claim: long ones, and numbers. */
function listWords(text) {
  const pieces = Intl.Segmenter ? [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)]
    .filter((piece) => piece.isWordLike).map((piece) => piece.segment) : text.match(/[\p{L}\p{N}]+/gu) ?? [];
  const isTelling = (word) => /\p{N}/u.test(word) || word.length >= (/^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}]+$/u.test(word) ? 5 : 2);
  return [...new Set(pieces.filter(isTelling))].slice(0, 60);
}

function drawTold(at, task) {
  const toggle = el("button", { type: "button", class: "toggle", "aria-expanded": String(shown.isTold), "aria-keyshortcuts": "o",
    on: { click: toggleTold } }, shown.isTold ? "Hide the judge's opinion" : "Show the judge's opinion", el("kbd", { "aria-hidden": "true" }, "O"));
  if (!shown.isTold) {
    const note = entryOf(at).saw ? "You have seen it; your labels from then on say so." : "Judge for yourself first. Your labels will say whether you had seen it.";
    return [toggle, el("p", { class: "muted small" }, note)];
  }
  const values = sheet.criteria.filter((criterion) => Object.hasOwn(task.judged, criterion.name));
  const metrics = new Set(task.verdicts.map((claim) => claim.metric));
  return [toggle, el("div", { class: "opinion" },
    el("dl", { class: "pairs" },
      values.map((criterion) => pair(criterion.name, task.judged[criterion.name] === null ? "no value" : formatNumber(task.judged[criterion.name], 3))),
      sheet.subject === "answers" && pair("system", task.system), task.reason && pair("chosen because", task.reason)),
    task.verdicts.length > 0 && el("ol", { class: "verdicts" }, task.verdicts.map((claim) => drawOpinion(claim, metrics.size > 1))))];
}

function pair(term, text) {
  return el("div", {}, el("dt", {}, name(term)), el("dd", { dir: "auto" }, text));
}

/** What the judge says of a claim; with the metric that it belongs to, if several have claims. */
function drawOpinion(claim, isNamed) {
  const score = typeof claim.score === "number" ? `score ${formatNumber(claim.score, 3)}` : "not judged";
  const verdict = Object.hasOwn(CHOICES, claim.verdict) ? CHOICES[claim.verdict] : { sign: "·", kind: "none", word: score };
  return el("li", {}, el("p", {}, isNamed && el("span", { class: "muted small" }, `${claim.metric}: `), el("span", { class: `verdict ${verdict.kind}` }, `${verdict.sign} ${verdict.word}`), " ",
    el("span", { dir: "auto" }, claim.text)),
    claim.reason && el("p", { class: "muted small", dir: "auto" }, claim.reason), claim.evidence && el("blockquote", { dir: "auto" }, claim.evidence));
}

function toggleTold() {
  if (!mayTell(shown.at)) {
    say("The judge's opinion can be seen once you have judged.");
    return;
  }
  shown.isTold = !shown.isTold;
  if (shown.isTold) noteSeen(shown.at);
  refill(document.getElementById("told"), drawTold(shown.at, shown.task));
  if (shown.isTold) {
    document.getElementById("told").scrollIntoView({ block: "nearest" });
    announce("The judge's opinion is shown.");
  }
}
