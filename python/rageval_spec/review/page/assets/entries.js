// Where labels go: into the browser, a key for each task, so that a change writes little, until a file has them.

const usesFiles = true;
const KEPT = "Everything stays on this computer: the page makes no request. What you enter is kept in this browser until you save it as a file.";

/** Whether the page may tell what the judge says of a task, to somebody who asks: of a document, once one has graded it. */
const mayTell = (at) => sheet.subject !== "documents" || work.states[at] === "done";

function keepEntry(at, entry) {
  const isEmpty = JSON.stringify(entry) === JSON.stringify(newEntry());
  keep(keyOf(work.annotator, at), isEmpty ? null : entry);
}

function keepAbout() {
  keep(keyOf(work.annotator, "about"), { at: work.at, unsaved: work.unsaved, shuffled: work.shuffled, goesOn: work.goesOn });
}

/** Removes everything that a person entered on this sheet. */
function forgetPerson(annotator) {
  const names = readPeople().names.filter((one) => one !== annotator);
  for (let at = 0; at < sheet.tasks.length; at++) keep(keyOf(annotator, at), null);
  keep(keyOf(annotator, "about"), null);
  keep(peopleKey(), names.length ? { names, last: null } : null);
}

function readKept(annotator) {
  const entries = new Map();
  for (let at = 0; at < sheet.tasks.length; at++) {
    const entry = readKey(keyOf(annotator, at));
    if (isEntry(entry)) entries.set(at, { ...newEntry(), ...entry });
  }
  return { entries, about: readKey(keyOf(annotator, "about")) ?? {} };
}

/** Takes over what another tab of the browser kept; returns the task, or -1. */
function followOther(event) {
  const prefix = work && keyOf(work.annotator, "");
  if (!work || !event.key?.startsWith(prefix)) return -1;
  const at = Number(event.key.slice(prefix.length));
  if (!Number.isInteger(at) || !sheet.tasks[at]) return -1;
  const entry = readKey(event.key);
  work.entries.set(at, isEntry(entry) ? { ...newEntry(), ...entry } : newEntry());
  work.states[at] = stateOf(at);
  return at;
}
