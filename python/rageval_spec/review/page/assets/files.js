// Saves labels as a file, and reads such a file again.

const VERSION = 1;

function listLabels() {
  const labels = [];
  sheet.tasks.forEach((task, at) => {
    const entry = entryOf(at);
    for (const slot of task.slots) {
      const label = entry.labels[slot.key];
      if (!label) continue;
      labels.push({ ...describeTask(task), metric: criterionOf(slot).name, claim: slot.claim, value: label.value,
        comment: entry.comment, time: label.time, saw_judge: label.saw_judge, reason: task.reason, probability: task.probability });
    }
  });
  return labels;
}

function describeTask({ dataset, system, query_id, answer_digest }) {
  return { dataset, system, query_id, answer_digest };
}

/** The file's content. Skipped tasks have no labels; they are in it for those who go on elsewhere, and for their comments. */
function writeFile() {
  const skipped = [];
  sheet.tasks.forEach((task, at) => {
    const { labels, comment } = entryOf(at);
    const isLost = comment && !Object.keys(labels).length;
    if (work.states[at] === "skipped" || isLost) skipped.push({ ...describeTask(task), comment });
  });
  const criteria = sheet.criteria.map(({ name, scale }) => ({ name, scale }));
  return JSON.stringify({ format: subject.form, version: VERSION, ...(sheet.subject === "nuggets" && { previous: sheet.spec_digest }), sheet: sheet.digest, annotator: work.annotator, criteria,
    labels: listLabels(), skipped }, null, 1);
}

function nameFile() {
  const clean = (text) => text.normalize("NFC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 40);
  return [subject.form.slice("rageval-".length), clean(sheet.name), clean(work.annotator)].filter(Boolean).join("-") + ".json";
}

function saveFile() {
  const address = URL.createObjectURL(new Blob([writeFile()], { type: "application/json" }));
  const link = el("a", { href: address, download: nameFile(), hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  work.unsaved = 0;
  keepAbout();
  return nameFile();
}

/** The content of a saved file, checked. Throws an error that says why the file does not fit. */
function parseFile(text) {
  let content = null;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Error("It is not JSON.");
  }
  if (content?.format !== subject.form) throw new Error(`It is not a file of ${subject.form.slice("rageval-".length)} that a review page saved.`);
  if (content.version !== VERSION) throw new Error(`It has version ${content.version}; this page reads version ${VERSION}.`);
  if (content.sheet !== sheet.digest) {
    throw new Error(`Its labels belong to another sheet (${content.sheet}). This page is sheet ${sheet.digest}.`);
  }
  if (typeof content.annotator !== "string" || !content.annotator.trim()) throw new Error("It does not say whose labels these are.");
  if (!Array.isArray(content.labels)) throw new Error("It has no list of labels.");
  const places = new Map(sheet.tasks.map((task, at) => [keyOfTask(task), at]));
  const labels = content.labels.map((label, number) => checkLabel(label, `Label ${number + 1}`, places));
  const skipped = (Array.isArray(content.skipped) ? content.skipped : [])
    .map((one) => ({ at: places.get(keyOfTask(one ?? {})), comment: String(one?.comment ?? "") })).filter(({ at }) => at !== undefined);
  return { annotator: content.annotator, labels, skipped };
}

function keyOfTask(task) {
  return JSON.stringify(Object.values(describeTask(task)));
}

function checkLabel(label, which, places) {
  const at = places.get(keyOfTask(label ?? {}));
  if (at === undefined) throw new Error(`${which} is for an answer that this sheet does not have.`);
  const slot = sheet.tasks[at].slots.find((one) => criterionOf(one).name === label.metric && one.claim === (label.claim ?? null));
  if (!slot) throw new Error(`${which} judges ${label.metric}, which this sheet does not ask about that answer.`);
  if (!optionOf(slot, label.value)) throw new Error(`${which} has the value ${JSON.stringify(label.value)}, which is not on the scale.`);
  const time = Number.isNaN(Date.parse(label.time)) ? new Date(0).toISOString() : new Date(label.time).toISOString();
  return { at, key: slot.key, comment: String(label.comment ?? ""), kept: { value: label.value, time, saw_judge: label.saw_judge === true } };
}

/** Adds the labels of a file; of two labels of the same thing the newer one stays. Returns `{added, older}`. */
function mergeFile({ labels, skipped }) {
  let [added, older] = [0, 0];
  const changed = new Map();
  const open = (at) => changed.get(at) ?? changed.set(at, structuredClone(entryOf(at))).get(at);
  for (const { at, key, comment, kept } of labels) {
    const entry = open(at);
    if (entry.labels[key] && entry.labels[key].time > kept.time) {
      older++;
      continue;
    }
    added++;
    entry.labels[key] = kept;
    entry.saw ||= kept.saw_judge;
    if (comment) entry.comment = comment;
  }
  for (const { at, comment } of skipped) {
    const entry = open(at);
    entry.skipped = true;
    entry.comment ||= comment;
  }
  for (const [at, entry] of changed) setEntry(at, entry);
  work.undo = [];
  return { added, older };
}
