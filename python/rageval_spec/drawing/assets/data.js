// The data of the page: its head, the cards of questions, and documents.

/** The head of the data; set before anything is drawn. */
let report = null;

/** Everything known of the question with this number: `{question, samples, told}`, samples by system. */
async function readCard(number) {
  const block = await readPart(`cards-${Math.floor(number / report.questions.block)}`);
  block.cards ??= indexCards(block);
  return block.cards.get(number);
}

function indexCards(block) {
  const cards = new Map();
  for (const question of block.questions) cards.set(question.question, { question, samples: [], told: [] });
  for (const sample of block.samples) cards.get(sample.question).samples[sample.system] = sample;
  for (const told of block.told) cards.get(told.question).told[told.cell] = told;
  return cards;
}

/** The document with this number: `{id, text}`. */
async function readDocument(number) {
  const { starts } = report.documents;
  let at = starts.length - 1;
  while (at > 0 && starts[at] > number) at--;
  const part = await readPart(`documents-${at}`);
  return { id: part.ids[number - part.first], text: part.texts[number - part.first] };
}

/** Adds to the head what is looked up often: metrics and cells by name. */
function prepare(head) {
  report = head;
  const { results, questions } = head;
  // Names that people choose are keys: without a prototype, `toString` finds only what has this name.
  for (const [key, of] of Object.entries(results)) {
    if (of && typeof of === "object" && !Array.isArray(of)) results[key] = Object.assign(Object.create(null), of);
  }
  report.lower = new Set(results.lower_is_better);
  report.count = questions.id.length;
  questions.cellOf = new Map(questions.cells.map((cell, at) => [`${cell.system} ${cell.metric}`, at]));
  for (const cell of questions.cells) cell.errors = new Set(cell.errors);
  questions.failedOf = new Map(Object.entries(questions.failed).map(([system, list]) => [Number(system), new Set(list)]));
  questions.causeOf = new Map();
  for (const [system, causes] of Object.entries(questions.causes)) {
    const of = new Map();
    for (const [cause, list] of Object.entries(causes)) for (const number of list) of.set(number, cause);
    questions.causeOf.set(Number(system), of);
  }
}

function cellOf(system, metric) {
  const at = report.questions.cellOf.get(`${system} ${metric}`);
  return at === undefined ? null : report.questions.cells[at];
}

function aggregateOf(dataset, system, metric, slice = null) {
  return report.results.aggregates.find(
    (one) => one.dataset === dataset && one.system === system && one.metric === metric && one.slice === slice);
}

function comparisonOf(dataset, system, metric) {
  return report.results.comparisons.find(
    (one) => one.dataset === dataset && one.system === system && one.metric === metric && one.slice === null);
}

/** Whether a difference is good: 1 better, -1 worse, 0 neither. */
function judgeChange(metric, difference) {
  return Math.sign(difference) * (report.lower.has(metric) ? -1 : 1);
}

/**
 * What a system is compared with on a metric: `{name, values}`, and `isEarlier` for an earlier evaluation; null if with
 * nothing. It is the system `other`, or else the baseline of a gate, or else the first system that has the metric.
 */
function baseOf(system, metric, other = -1) {
  const cell = cellOf(system, metric);
  const base = other >= 0 ? { system: other } : cell?.base ?? report.questions.cells.find((one) => one.metric === metric);
  if (base?.values && base.name) return { ...base, isEarlier: true };
  const of = base && base.system !== system ? cellOf(base.system, metric) : null;
  return of && { name: report.results.systems[base.system], values: of.values, isEarlier: false };
}
