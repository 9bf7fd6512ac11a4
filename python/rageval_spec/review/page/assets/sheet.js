// The sheet: its criteria, its tasks, and what is asked about each task.

/** The head of the data; set before anything is drawn. */
let sheet = null;

/** What a sheet of another subject than answers says and keeps. */
const SUBJECTS = {
  answers: { noun: "answer", title: "Answer", done: "labelled", form: "rageval-labels", contexts: "Contexts" },
  documents: { noun: "document", title: "Document", done: "labelled", form: "rageval-labels" },
  nuggets: { noun: "question", title: "Nuggets", done: "checked", form: "rageval-nuggets" },
};
let subject = SUBJECTS.answers;

const CHOICES = {
  yes: { word: "Yes", key: "y", kind: "good", sign: "✓" },
  no: { word: "No", key: "n", kind: "bad", sign: "✗" },
  supported: { ...VERDICTS.supported, word: "Supported", key: "1" },
  contradicted: { ...VERDICTS.contradicted, word: "Contradicted", key: "2" },
  not_enough_info: { ...VERDICTS.not_enough_info, word: "Not enough info", key: "3" },
};

function prepare(head) {
  sheet = head;
  subject = SUBJECTS[head.subject] ?? SUBJECTS.answers;
  STATES.done.word = subject.done;
  STATES.open.word = `not ${subject.done}`;
  for (const criterion of sheet.criteria) {
    const [means, lines] = splitGuidelines(criterion);
    criterion.lines = lines;
    criterion.label = criterion.name.replaceAll("_", " ");
    criterion.options = listOptions(criterion, means);
  }
  for (const task of sheet.tasks) {
    task.slots = task.slots.map(([criterion, claim]) => ({ criterion, claim, key: claim === null ? `${criterion}` : `${criterion}.${claim}` }));
  }
}

/** The lines of the guidelines that say what a choice means (`5: ...`), by choice, and the other lines. */
function splitGuidelines(criterion) {
  const means = new Map();
  const lines = criterion.guidelines.split("\n").filter((line) => {
    const choice = criterion.choices.find((one) => line.startsWith(`${one}:`));
    if (choice !== undefined) means.set(choice, line.slice(choice.length + 1).trim());
    return choice === undefined;
  });
  return [means, lines];
}

/** What can be answered: `{value, word, key, kind, sign, means}`, the worst grade first. */
function listOptions(criterion, told) {
  const isPlain = criterion.choices.every((choice) => /^([0-9]|10)$/.test(choice));
  return criterion.choices.map((choice, at) => {
    const means = told.get(choice) ?? "";
    if (criterion.kind !== "rating") return { value: choice, means, ...CHOICES[choice] };
    const key = isPlain ? choice.replace("10", criterion.choices.includes("0") ? "t" : "0") : at < 9 ? String(at + 1) : "";
    return { value: Number(choice), word: choice, key, kind: "grade", sign: "", means };
  });
}

function criterionOf(slot) {
  return sheet.criteria[slot.criterion];
}

function optionOf(slot, value) {
  if (criterionOf(slot).kind === "nuggets") return Array.isArray(value?.now) ? { word: "checked", kind: "good", sign: "✓" } : undefined;
  return criterionOf(slot).options.find((option) => option.value === value);
}

/** A task with all its texts. */
async function readTask(at) {
  const block = await readPart(`tasks-${Math.floor(at / sheet.block)}`);
  return { ...sheet.tasks[at], ...block[at % sheet.block] };
}

/** Unpacks the next tasks while the reader is busy with this one. */
function readAhead(at) {
  if (at !== undefined && at >= 0) readPart(`tasks-${Math.floor(at / sheet.block)}`).catch(() => {});
}

/** The numbers of all tasks: in the sheet's order, or in an order of one's own that depends on the name alone. */
function orderTasks(annotator, isShuffled) {
  const order = Array.from(sheet.tasks, (_, at) => at);
  if (!isShuffled) return order;
  let seed = 2166136261;
  for (const unit of sheet.digest + annotator) seed = Math.imul(seed ^ unit.codePointAt(0), 16777619);
  const draw = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  for (let at = order.length - 1; at > 0; at--) {
    const other = Math.floor(draw() * (at + 1));
    [order[at], order[other]] = [order[other], order[at]];
  }
  return order;
}
