// Keeps what was entered in the browser, a key for each task, so that a change writes little.

let canKeep = true;

function keyOf(annotator, part) {
  return `rageval-review ${sheet.digest} ${JSON.stringify(annotator)} ${part}`;
}

const peopleKey = () => `rageval-review ${sheet.digest}`;

/** Writes a value, or removes it if it is null. The first failure is told to the reader, for good. */
function keep(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {
    canKeep = false;
  }
}

function readKey(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** Finds out whether the browser keeps anything: in private windows and sandboxes it may not. */
function tryKeeping() {
  const key = "rageval-review test";
  keep(key, 1);
  if (readKey(key) !== 1) canKeep = false;
  keep(key, null);
}

function keepEntry(at, entry) {
  const isEmpty = JSON.stringify(entry) === JSON.stringify(newEntry());
  keep(keyOf(work.annotator, at), isEmpty ? null : entry);
}

function keepAbout() {
  keep(keyOf(work.annotator, "about"), { at: work.at, unsaved: work.unsaved, shuffled: work.shuffled, goesOn: work.goesOn });
}

function readPeople() {
  const people = readKey(peopleKey());
  return { names: Array.isArray(people?.names) ? people.names : [], last: people?.last ?? null };
}

/** Remembers who works on this sheet; null for nobody. */
function keepPerson(annotator) {
  const { names } = readPeople();
  const known = annotator === null || names.includes(annotator) ? names : [...names, annotator];
  keep(peopleKey(), { names: known, last: annotator });
  if (annotator !== null) keep("rageval-review name", annotator);
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

function isEntry(entry) {
  return entry !== null && typeof entry === "object" && entry.labels !== null && typeof entry.labels === "object";
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
