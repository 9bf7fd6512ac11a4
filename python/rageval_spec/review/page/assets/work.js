// What one person entered: an entry for each task, with labels, a comment, and whether the judge's opinion was seen.

/**
 * `{annotator, order, entries, states, at, filter, search, undo, unsaved, goesOn}`; null until somebody has said who
 * they are.
 */
let work = null;

const STATES = {
  open: { sign: "○", word: "not labelled", kind: "none" },
  started: { sign: "◐", word: "started", kind: "weak" },
  done: { sign: "✓", word: "labelled", kind: "good" },
  skipped: { sign: "–", word: "skipped", kind: "none" },
};
const LONGEST_PAUSE = 300;
const FEWEST_TIMES = 3;

function newEntry() {
  return { labels: {}, comment: "", skipped: false, saw: false, seconds: 0 };
}

function entryOf(at) {
  return work.entries.get(at) ?? newEntry();
}

function stateOf(at) {
  const entry = entryOf(at);
  const { slots } = sheet.tasks[at];
  const filled = slots.filter((slot) => slot.key in entry.labels).length;
  if (filled === slots.length) return "done";
  return entry.skipped ? "skipped" : filled ? "started" : "open";
}

function openWork(annotator, isShuffled) {
  const kept = readKept(annotator);
  const shuffled = kept.about.shuffled ?? isShuffled;
  work = { annotator, shuffled, order: orderTasks(annotator, shuffled), entries: kept.entries, states: [], at: -1,
    filter: "all", search: "", undo: [], unsaved: kept.about.unsaved ?? 0, goesOn: kept.about.goesOn === true };
  work.states = sheet.tasks.map((_, at) => stateOf(at));
  keepPerson(annotator);
  keepAbout();
  return kept.about.at ?? -1;
}

function setEntry(at, entry) {
  work.entries.set(at, entry);
  work.states[at] = stateOf(at);
  keepEntry(at, entry);
}

/** Changes an entry; the change can be undone. Changes of the same kind that follow one another are undone together. */
function changeEntry(at, alter, kind = null) {
  const before = entryOf(at);
  const after = structuredClone(before);
  alter(after);
  if (JSON.stringify(before) === JSON.stringify(after)) return;
  const wasOpen = ["open", "started"].includes(work.states[at]);
  const last = work.undo.at(-1);
  if (!kind || last?.kind !== kind || last.at !== at) work.undo.push({ at, before, kind });
  if (wasOpen && shown.at === at) after.seconds += shown.spend();
  setEntry(at, after);
  work.unsaved++;
  keepAbout();
}

function setLabel(at, slot, value) {
  changeEntry(at, (entry) => {
    if (entry.labels[slot.key]?.value === value) delete entry.labels[slot.key];
    else entry.labels[slot.key] = { value, time: new Date().toISOString(), saw_judge: entry.saw };
    entry.skipped = false;
  });
}

function clearLabel(at, slot) {
  changeEntry(at, (entry) => delete entry.labels[slot.key]);
}

function noteSeen(at) {
  const entry = entryOf(at);
  if (!entry.saw) setEntry(at, { ...entry, saw: true });
}

/** Takes the last change back, but not that the judge's opinion was seen; returns the task, or -1. */
function undo() {
  const last = work.undo.pop();
  if (!last) return -1;
  setEntry(last.at, { ...last.before, saw: last.before.saw || entryOf(last.at).saw });
  work.unsaved++;
  keepAbout();
  return last.at;
}

function countStates() {
  const counts = { open: 0, started: 0, done: 0, skipped: 0 };
  for (const state of work.states) counts[state]++;
  return counts;
}

/** The seconds that the rest will take at one's own pace; null while too little is known. */
function estimateRest() {
  const counts = countStates();
  const spent = [...work.entries].filter(([at, entry]) => work.states[at] === "done" && entry.seconds > 0)
    .map(([, entry]) => entry.seconds).sort((a, b) => a - b);
  if (spent.length < FEWEST_TIMES) return null;
  return spent[spent.length >> 1] * (counts.open + counts.started);
}

function describeRest(seconds) {
  if (seconds < 60) return "less than a minute left";
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `about ${minutes} min left`;
  const hours = Math.floor(minutes / 60);
  return `about ${hours} h${minutes % 60 ? ` ${minutes % 60} min` : ""} left`;
}

const FILTERS = [["all", "All tasks"], ["unlabelled", "Not labelled"], ["started", "Started"], ["done", "Labelled"],
  ["skipped", "Skipped"], ["comment", "With a comment"]];

function passes(at) {
  const state = work.states[at];
  if (work.filter === "unlabelled" && state !== "open" && state !== "started") return false;
  if (work.filter === "comment" && !entryOf(at).comment) return false;
  if (["started", "done", "skipped"].includes(work.filter) && state !== work.filter) return false;
  if (!work.search) return true;
  const { question, query_id: id } = sheet.tasks[at];
  const text = `${id}\n${question}`.toLowerCase();
  return work.search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function isWaiting(at) {
  return work.states[at] === "open" || work.states[at] === "started";
}

/** The next task in a direction that passes a test, or -1; `wraps` goes on at the other end. */
function findTask(step, test, wraps = false) {
  const { order } = work;
  const from = work.at < 0 ? (step > 0 ? -1 : order.length) : order.indexOf(work.at);
  for (let count = 1; count <= order.length; count++) {
    const place = from + step * count;
    if (!wraps && (place < 0 || place >= order.length)) return -1;
    const at = order[((place % order.length) + order.length) % order.length];
    if (test(at)) return at;
  }
  return -1;
}
