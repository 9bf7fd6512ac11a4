// Where labels go: to the server, one by one, which has each on the disk before it answers that it is saved.

const usesFiles = false;
const KEPT = "Each label is written into the file of labels as you give it. Nothing leaves this computer.";

/** What the file has: by person and task, the value of each slot. */
const known = new Map();
const opinions = new Map();
const failures = new Map();
let writing = Promise.resolve();
let waiting = 0;

/** The judge's opinion is hidden until everything about the task is labelled and saved. */
const mayTell = (at) => opinions.has(at);

function knownOf(annotator) {
  if (!known.has(annotator)) known.set(annotator, structuredClone(sheet.labels[annotator] ?? {}));
  return known.get(annotator);
}

function readKept(annotator) {
  const entries = new Map();
  for (const [at, labels] of Object.entries(knownOf(annotator))) {
    const entry = newEntry();
    for (const [key, one] of Object.entries(labels)) {
      entry.labels[key] = { value: one.value, time: one.time, saw_judge: one.saw_judge };
      entry.saw ||= one.saw_judge;
      entry.comment ||= one.comment;
    }
    entries.set(Number(at), entry);
  }
  return { entries, about: {} };
}

async function ask(path, content) {
  const options = content ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(content) } : {};
  const reply = await fetch(`/label/${sheet.record}/${path}`, options);
  const found = await reply.json();
  if (!reply.ok) throw Object.assign(new Error(found.error), { status: reply.status, current: found.current });
  return found;
}

/** Sends what differs from the file, one label after the other; a comment waits until the person stops typing. */
function keepEntry(at, entry) {
  const { annotator } = work;
  const has = knownOf(annotator)[at] ?? {};
  for (const slot of sheet.tasks[at].slots) {
    const [wanted, there] = [entry.labels[slot.key], has[slot.key]];
    if ((wanted?.value ?? null) !== (there?.value ?? null)) send(annotator, at, slot);
    else if (wanted && entry.comment !== (there?.comment ?? "")) sendLater(annotator, at, slot);
  }
}

const typing = new Map();

function sendLater(annotator, at, slot) {
  const key = `${at} ${slot.key}`;
  clearTimeout(typing.get(key));
  typing.set(key, setTimeout(() => { typing.delete(key); send(annotator, at, slot); }, 700));
}

function send(annotator, at, slot) {
  waiting++;
  showState();
  writing = writing.then(() => write(annotator, at, slot)).finally(() => { waiting--; showState(); });
}

async function write(annotator, at, slot) {
  const has = (knownOf(annotator)[at] ??= {});
  const entry = work?.annotator === annotator ? entryOf(at) : newEntry();
  const [wanted, there] = [entry.labels[slot.key], has[slot.key]];
  if ((wanted?.value ?? null) === (there?.value ?? null) && (!wanted || entry.comment === there.comment)) return;
  try {
    await ask("save", { annotator, task: sheet.ids[at], criterion: slot.criterion, claim: slot.claim,
      value: wanted?.value ?? null, before: there?.value ?? null, comment: entry.comment, saw_judge: wanted?.saw_judge === true });
    if (wanted) has[slot.key] = { ...wanted, comment: entry.comment };
    else delete has[slot.key];
    failures.delete(at);
    if (stateOf(at) === "done") await fetchOpinion(at);
    measure();
  } catch (error) {
    if (error.status === 409) takeOver(at, slot, has, error.current);
    else failures.set(at, error.status ? error.message : "the server does not answer; start 'rageval-spec view' again");
  }
}

/** Another tab or person changed the label: what the file has counts, and is shown. */
function takeOver(at, slot, has, current) {
  const entry = structuredClone(entryOf(at));
  if (current) has[slot.key] = entry.labels[slot.key] = current;
  else { delete has[slot.key]; delete entry.labels[slot.key]; }
  work.entries.set(at, entry);
  work.states[at] = stateOf(at);
  redrawAll();
  say("This was labelled in another tab meanwhile. What is shown now is in the file; change it if you like.");
}

async function fetchOpinion(at) {
  if (!opinions.has(at)) {
    const query = new URLSearchParams({ task: sheet.ids[at], annotator: work.annotator });
    opinions.set(at, await ask(`opinion?${query}`));
  }
  if (shown.at !== at) return;
  Object.assign(shown.task, opinions.get(at));
  shown.isTold = true;
  noteSeen(at);
  refill(document.getElementById("told"), drawTold(at, shown.task));
}

/** Called when a task is shown, and after each change. */
function keepAbout() {
  if (!document.getElementById("standing")) {
    document.getElementById("content").prepend(el("section", { id: "standing", class: "standing", "aria-label": "What the labels say so far" },
      el("p", { id: "saved", role: "status" }), el("div", { id: "numbers" })));
    showState();
    measure();
  }
  if (shown.at >= 0 && shown.task && stateOf(shown.at) === "done" && !waiting) {
    fetchOpinion(shown.at).catch(() => {});
  }
}

function showState() {
  const place = document.getElementById("saved");
  if (!place) return;
  const [failed] = failures.values();
  place.className = failed ? "bad" : "muted";
  refill(place, failed ? ["✗ Not saved: ", failed, " ", el("button", { type: "button", class: "toggle", on: { click: sendAgain } }, "Save again")]
    : waiting ? "Saving…" : ["Labels are saved in ", name(sheet.file)]);
}

function sendAgain() {
  for (const at of failures.keys()) keepEntry(at, entryOf(at));
}

let measuring = null;

/** Asks for kappa, the corrected mean and whether the labels are enough; one question at a time. */
async function measure() {
  if (measuring) { measuring = "again"; return; }
  measuring = "now";
  try {
    drawStanding((await ask("standing")).standings);
  } catch {
    // The next label asks again.
  }
  const isAsked = measuring === "again";
  measuring = null;
  if (isAsked) measure();
}

function drawStanding(standings) {
  refill(document.getElementById("numbers"), standings.map((one) => el("div", { class: "metric" },
    el("dl", {}, [[one.metric, one.items], ["judge's mean", one.judged], ["corrected mean", one.mean], ["kappa", one.kappa]].map(([term, text]) =>
      el("div", {}, el("dt", {}, name(term)), el("dd", {}, text)))),
    el("p", { class: one.enough ? "good" : "muted" }, `${one.enough ? "✓" : "→"} ${one.told}`))));
}

function forgetPerson() {}

function followOther() {
  return -1;
}

window.addEventListener("beforeunload", (event) => { if (waiting || failures.size || typing.size) event.preventDefault(); });
