// Keeps what belongs to a person in the browser: their name, and values under keys of their own.

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

function isEntry(entry) {
  return entry !== null && typeof entry === "object" && entry.labels !== null && typeof entry.labels === "object";
}

