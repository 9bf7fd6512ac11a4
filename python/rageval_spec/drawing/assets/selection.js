// What is chosen: the state, its form in the address, and the questions that it selects.

const SORTS = [["worst", "Worst first"], ["best", "Best first"], ["drop", "Largest drop first"], ["gain", "Largest gain first"],
  ["file", "Order of the dataset"]];
let defaults = null;

/** The state that the page starts with: the system and metric of the worst gate, else what judges told most about. */
function defaultState() {
  defaults ??= { view: "overview", q: -1, ...chooseCell(), other: -1, below: null, slice: -1, cause: "", regressed: false,
    failed: false, search: "", sort: "worst", dataset: -1 };
  return defaults;
}

function chooseCell() {
  const { results, questions } = report;
  const bad = ["fail", "inconclusive", "warn"].map((outcome) => results.gates.find((gate) => gate.outcome === outcome)).find(Boolean);
  const [system, metric] = bad ? [results.systems.indexOf(bad.system), results.metrics.indexOf(bad.metric)] : [-1, -1];
  if (cellOf(system, metric)) return { system, metric };
  const answering = questions.answering[0] ?? questions.cells[0]?.system ?? 0;
  const own = questions.cells.filter((cell) => cell.system === answering);
  return { system: answering, metric: (own.find((cell) => cell.told) ?? own[0])?.metric ?? 0 };
}

/** The address of a state; what is as usual is left out. */
function writeHash(change) {
  const state = { ...defaultState(), ...change };
  const { results, questions } = report;
  const keys = new URLSearchParams();
  if (state.q >= 0) {
    keys.set("q", questions.id[state.q]);
    if (results.datasets.length > 1) keys.set("dataset", results.datasets[questions.dataset[state.q]]);
  } else if (state.view !== "overview") keys.set("view", state.view);
  if (state.view === "questions" || state.q >= 0) {
    if (state.q >= 0 || state.system !== defaults.system) keys.set("system", results.systems[state.system]);
    if (state.other >= 0) keys.set("with", results.systems[state.other]);
    if (state.metric !== defaults.metric) keys.set("metric", results.metrics[state.metric]);
    if (state.below !== null) keys.set("below", state.below);
    if (state.slice >= 0) keys.set("slice", questions.sliceNames[state.slice]);
    if (state.dataset >= 0 && state.q < 0) keys.set("dataset", results.datasets[state.dataset]);
    if (state.cause) keys.set("cause", state.cause);
    for (const flag of ["regressed", "failed"]) if (state[flag]) keys.set(flag, "1");
    if (state.search) keys.set("search", state.search);
    if (state.sort !== "worst") keys.set("sort", state.sort);
  }
  return `#${keys}`;
}

/**
 * The state of an address. Unknown names are as if they were not there; `unknown` lists them, and `missing` is the
 * question that is not there.
 */
function readHash(hash) {
  const keys = new URLSearchParams(hash.replace(/^#/, ""));
  const { results, questions } = report;
  const state = { ...defaultState() };
  state.unknown = [];
  const place = (list, key, noun = key) => {
    const at = list.indexOf(keys.get(key) ?? "");
    if (at < 0 && keys.get(key)) state.unknown.push([noun, keys.get(key)]);
    return at;
  };
  const dataset = place(results.datasets, "dataset");
  if (keys.has("q")) state.q = questions.id.findIndex((id, at) => id === keys.get("q") &&
    (dataset < 0 || questions.dataset[at] === dataset));
  else state.dataset = dataset;
  state.missing = state.q < 0 ? keys.get("q") : null;
  state.view = keys.has("q") ? "questions" : ["questions", "provenance"].find((view) => view === keys.get("view")) ?? "overview";
  const [system, metric, other] = [place(results.systems, "system"), place(results.metrics, "metric"),
    place(results.systems, "with", "system")];
  if (system >= 0) state.system = system;
  if (metric >= 0) state.metric = metric;
  if (!cellOf(state.system, state.metric)) state.metric = questions.cells.find((cell) => cell.system === state.system)?.metric ?? state.metric;
  state.other = other === state.system ? -1 : other;
  state.slice = place(questions.sliceNames, "slice");
  const below = Number.parseFloat(keys.get("below"));
  state.below = Number.isFinite(below) ? below : null;
  state.cause = listCauses()[place(listCauses(), "cause")] ?? "";
  for (const flag of ["regressed", "failed"]) state[flag] = keys.get(flag) === "1";
  state.search = keys.get("search") ?? "";
  state.sort = SORTS.some(([sort]) => sort === keys.get("sort")) ? keys.get("sort") : "worst";
  return state;
}

/** The causes that occur. */
function listCauses() {
  return [...new Set([...report.questions.causeOf.values()].flatMap((of) => [...of.values()]))];
}

/** For each question, the value and its change; null where there is none. */
function measure(state) {
  const cell = cellOf(state.system, state.metric);
  const against = baseOf(state.system, state.metric, state.other);
  const value = (at) => cell?.values[at] ?? null;
  const change = (at) => {
    const [now, before] = [value(at), against?.values[at] ?? null];
    return now === null || before === null ? null : now - before;
  };
  return { cell, against, value, change };
}

/** The numbers of the questions that pass the filters, in the chosen order. */
function selectQuestions(state) {
  const { questions } = report;
  const { cell, value, change } = measure(state);
  const metric = report.results.metrics[state.metric];
  const causes = questions.causeOf.get(state.system);
  const failed = questions.failedOf.get(state.system);
  const finds = makeSearch(state.search);
  return orderQuestions(state).filter((at) =>
    (state.dataset < 0 || questions.dataset[at] === state.dataset) &&
    (state.slice < 0 || questions.slices[at].includes(state.slice)) &&
    (state.below === null || (value(at) !== null && value(at) < state.below)) &&
    (!state.cause || causes?.get(at) === state.cause) &&
    (!state.failed || failed?.has(at) || cell?.errors.has(at)) &&
    (!state.regressed || (change(at) !== null && judgeChange(metric, change(at)) < 0)) &&
    (!finds || finds(at)));
}

let lastOrder = { key: null, order: [] };

/** All questions in the chosen order; kept, so that a search need not sort again. */
function orderQuestions(state) {
  const key = [state.sort, state.system, state.metric, state.other].join(" ");
  if (lastOrder.key !== key) lastOrder = { key, order: sortQuestions(state) };
  return lastOrder.order;
}

/** All questions by value or by change; those without one come last. */
function sortQuestions(state) {
  const order = Array.from({ length: report.count }, (_, at) => at);
  if (state.sort === "file") return order;
  const { value, change } = measure(state);
  const isLower = report.lower.has(report.results.metrics[state.metric]);
  const direction = (state.sort === "worst" || state.sort === "drop" ? 1 : -1) * (isLower ? -1 : 1);
  const figure = state.sort === "worst" || state.sort === "best" ? value : change;
  const keys = Float64Array.from(order, (at) => {
    const found = figure(at);
    return found === null ? Infinity : direction * found;
  });
  return order.sort((a, b) => (keys[a] === keys[b] ? a - b : keys[a] - keys[b]));
}

const lowered = [];
let answersRead = 0;
let isReading = false;

/** A test for the words of a search, or null without one. Ids and questions are searched at once, answers when read. */
function makeSearch(search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  if (!lowered.length) {
    const { id, text } = report.questions;
    for (let at = 0; at < report.count; at++) lowered.push(`${id[at]}\n${text[at] ?? ""}`.toLowerCase());
  }
  return (at) => words.every((word) => lowered[at].includes(word));
}

/** Reads all answers for the search, a block at a time, and tells after each how far it is. */
async function readAnswers(tell) {
  if (isReading || !report.questions.answering.length) return;
  isReading = true;
  makeSearch("a");
  const blocks = Math.ceil(report.count / report.questions.block);
  for (let block = 0; block < blocks; block++) {
    for (const sample of (await unpackPart(`cards-${block}`)).samples) {
      if (sample.answer) lowered[sample.question] += `\n${sample.answer.toLowerCase()}`;
    }
    answersRead = (block + 1) / blocks;
    tell(answersRead);
    await new Promise((resolve) => setTimeout(resolve));
  }
}
