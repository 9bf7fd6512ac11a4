// A card: one question, and what one system or two made of it.

async function drawCardOf(state, change) {
  const card = await readCard(state.q);
  const { questions, results } = report;
  const systems = state.other >= 0 ? [state.system, state.other] : [state.system];
  const sides = await Promise.all(systems.map((system) => drawSide(card, system, state)));
  const slices = (questions.slices[state.q] ?? []).map((at) => questions.sliceNames[at]);
  return el("article", { class: "card", "aria-labelledby": "card-title" },
    el("header", {},
      el("p", { class: "crumbs" }, name(questions.id[state.q], { class: "strong" }), results.datasets.length > 1 &&
        [" on ", name(results.datasets[questions.dataset[state.q]])],
        slices.map((one) => el("span", { class: "chip" }, name(one)))),
      foldLong(el("h2", { id: "card-title", dir: "auto", tabindex: "-1" }, questions.text[state.q] ?? questions.id[state.q]),
        questions.text[state.q] ?? "", "question")),
    drawHistory(card.question),
    drawReferences(card.question),
    el("div", { class: `sides ${systems.length > 1 ? "two" : "one"}` }, sides),
    drawColumns(card.question));
}

function drawReferences(question) {
  const references = question.references ?? [];
  return references.length > 0 && el("section", { class: "reference", "aria-label": "Reference answer" },
    el("h3", {}, references.length > 1 ? "Reference answers" : "Reference answer"),
      references.map((one) => foldLong(el("p", { class: "prose", dir: "auto" }, one), one, "reference answer")));
}

/** The turns of the conversation before the question. */
function drawHistory({ history }) {
  return history && el("section", { class: "reference", "aria-label": "Conversation" }, el("h3", {}, "Earlier turns"),
    history.map((one) => foldLong(el("p", { class: "prose", dir: "auto" }, one), one, "turn")));
}

/** What an agent did for an answer, and which calls a metric expected. */
function drawAgent(card, system, sample) {
  const steps = JSON.parse(sample?.steps ?? "[]");
  const calls = listCalls(card, system);
  const sign = (call) => call && el("span", { class: `chip ${call.state === "matched" ? "good" : "bad"}` },
    call.state === "matched" ? "✓ expected" : call.state);
  const missing = calls.filter((call) => call.state === "missing");
  return steps.length + missing.length > 0 && el("div", { class: "answer agent" },
    el("h4", {}, `Steps (${steps.length})`),
    steps.map(([kind, call, said], at) => el("details", {}, el("summary", {}, el("span", { class: "chip" }, kind), " ",
      sign(calls.find((one) => one.step === at + 1)), ` ${call}`), el("p", { class: "prose", dir: "auto" }, said))),
    missing.map((call) => el("p", {}, sign(call), ` ${call.name}${call.arguments === null ? "" : `(${call.arguments})`}`)));
}

/** The calls that the first such metric compared. */
function listCalls(card, system) {
  const told = report.questions.cells.map((cell, at) => cell.system === system && readDetails(card.told[at])?.calls);
  return told.find((calls) => Array.isArray(calls) && calls.every((call) => call?.state && call.name)) ?? [];
}

/** The question's other columns, as they are in its file. */
function drawColumns(question) {
  const known = { group: question.group, condition: question.condition, answerable: question.answerable };
  let own = {};
  try {
    own = JSON.parse(question.columns ?? "{}") ?? {};
  } catch {
    own = {};
  }
  const rows = Object.entries({ ...known, ...own }).filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]);
  return rows.length > 0 && el("section", { class: "columns" }, el("h3", {}, "Other columns"),
    el("dl", { class: "pairs" }, rows.map(([key, value]) => el("div", {}, el("dt", {}, name(key)), el("dd", { dir: "auto" },
      foldLong(el("span", {}, value), value, `column ${key}`))))));
}

async function drawSide(card, system, state) {
  const sample = card.samples[system];
  const title = el("h3", { class: "system" }, name(report.results.systems[system]), drawStatus(sample, system, state.q));
  const side = el("section", { class: "side", "aria-label": report.results.systems[system] }, title);
  const documents = await Promise.all((sample?.shown ?? []).map((number) => (number === null ? { id: null,
    text: null } : readDocument(number))));
  const shown = drawDocuments(sample, documents);
  const values = drawValues(card, system, state);
  const missing = await drawMissing(sample, documents);
  const left = el("div", { class: "left" }, el("div", { class: "answers" },
    drawAnswer(card, system, sample, documents, shown, state), drawEarlier(sample)),
    drawAgent(card, system, sample), values, drawTold(card, system));
  const right = el("div", { class: "right" }, shown.node, missing);
  return fill(side, [el("div", { class: "body" }, left, right)]);
}

function drawStatus(sample, system, number) {
  const cause = report.questions.causeOf.get(system)?.get(number);
  return [cause && el("span", { class: `chip ${cause}`, title: CAUSES[cause] ?? null }, cause),
    sample?.truncated && el("span", { class: "muted small" }, "cut off at the token limit"),
    sample?.seconds !== null && sample?.seconds !== undefined && el("span", { class: "muted small" },
      `${formatNumber(sample.seconds, 2)} s`),
    sample?.input_tokens !== null && sample?.input_tokens !== undefined && el("span", { class: "muted small" },
      `${formatCount(sample.input_tokens + (sample.output_tokens ?? 0), "token")}`),
    sample?.cost !== null && sample?.cost !== undefined && el("span", { class: "muted small" }, `$${formatNumber(sample.cost, 4)}`)];
}

function drawAnswer(card, system, sample, documents, shown, state) {
  if (!sample) return el("p", { class: "blank" }, "This system has no recorded answer to this question.");
  if (sample.error !== null) return el("div", { class: "answer" }, el("h4", {}, "Answer"),
    foldLong(el("p", { class: "failure", dir: "auto" }, el("strong", {}, "✗ No answer. "), sample.error), sample.error, "error"));
  if (sample.answer === null) return null;
  const groups = listMarks(card, system, sample.answer, sample.citations);
  const box = el("div", { class: "answer" }, el("h4", {}, "Answer"));
  if (!sample.answer.trim()) return fill(box, [el("p", { class: "failure" }, "The answer is empty.")]);
  if (!groups.length) return fill(box, [foldLong(el("p", { class: "prose", dir: "auto" }, sample.answer), sample.answer, "answer")]);
  const start = Math.max(0, groups.findIndex((group) => group.metric === report.results.metrics[state.metric]));
  return fill(box, [drawMarked(sample.answer, groups, start, { documents, shown, card, system })]);
}

/** The answer of the earlier evaluation that a gate names, beside today's. */
function drawEarlier(sample) {
  if (!sample?.earlier) return null;
  const answer = sample.earlier_answer;
  const isSame = answer === null && sample.answer !== null;
  return el("div", { class: "answer earlier" }, el("h4", {}, "Answer in ", name(sample.earlier)),
    isSame ? el("p", { class: "muted" }, "The same answer.") :
      answer.trim() ? foldLong(el("p", { class: "prose", dir: "auto" }, answer), answer, "earlier answer") :
        el("p", { class: "muted" }, "The answer is empty."));
}

function drawValues(card, system, state) {
  const other = state.other < 0 ? -1 : system === state.system ? state.other : state.system;
  const own = report.questions.cells.map((cell, at) => ({ cell, at })).filter(({ cell }) => cell.system === system);
  const rows = own.map(({ cell, at }) => drawValue(cell, card.told[at], baseOf(system, cell.metric, other), state));
  return rows.length > 0 && el("div", { class: "values" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Values"), el("th", { scope: "col", class: "number" }, spoken("value")),
      el("th", { scope: "col", class: "number" }, spoken("change")))),
    el("tbody", {}, rows)));
}

function drawValue(cell, told, base, state) {
  const metric = report.results.metrics[cell.metric];
  const value = cell.values[state.q];
  const before = base?.values[state.q] ?? null;
  const difference = value === null || before === null ? null : value - before;
  const better = difference === null ? 0 : judgeChange(metric, difference);
  return el("tr", { class: cell.metric === state.metric ? "chosen" : "" },
    el("th", { scope: "row" }, name(metric), told?.reason && el("span", { class: "why", dir: "auto" }, told.reason)),
    el("td", { class: "number strong" }, cell.errors.has(state.q) ? el("span", { class: "bad" }, "✗ failed") : formatValue(metric, value),
      drawBand(metric, value)),
    el("td", { class: "number" },
      el("span", { class: ["bad", "none", "good"][better + 1] }, describeChange(metric, difference)),
      before !== null && el("span", { class: "was" }, base.isEarlier ? [`was ${formatValue(metric, before)} (`, name(base.name), ")"] :
        [name(base.name), ` has ${formatValue(metric, before)}`])));
}

/** `▲ 0.125`, `▼ 0.125`, `same`, or "" if it is not known. */
function describeChange(metric, difference) {
  if (difference === null) return "";
  return difference === 0 ? "same" : `${difference > 0 ? "▲" : "▼"} ${formatSize(metric, Math.abs(difference))}`;
}

function gradeOf(sample, id) {
  return id === null ? null : sample.relevant?.find((one) => one.doc_id === id) ?? null;
}

function isRelevant(judged) {
  return judged.relevance >= (report.results.settings?.ranking?.relevance_level ?? 1);
}

function drawGrade(sample, id) {
  if (!sample.relevant) return null;
  const judged = gradeOf(sample, id);
  if (!judged) return el("span", { class: "chip" }, "not judged");
  return isRelevant(judged) ? el("span", { class: "chip good" }, `✓ relevant ${judged.relevance}`) : el("span",
    { class: "chip bad" }, `✗ not relevant ${judged.relevance}`);
}

/** The documents that the system was given or found; `show(number, evidence)` highlights evidence in one. */
function drawDocuments(sample, documents) {
  const items = documents.map((one, at) => drawDocument(one, at, sample));
  const node = items.length > 0 && el("div", { class: "documents" },
    el("h4", {}, sample.answer === null ? "Retrieved documents" : "Documents that the answer could use"),
    el("ol", {}, items.map((item) => item.node)));
  return { node, items };
}

function drawDocument(one, at, sample, isMissing = false) {
  const text = el("p", { class: "prose text", dir: "auto" }, one.text ?? "The text of this document is not in the results.");
  if (one.text === null) text.classList.add("muted");
  const node = el("li", { class: "document" },
    el("div", { class: "about" }, !isMissing && el("span", { class: "rank" }, String(at + 1)), one.id !== null && name(one.id,
      { class: "strong" }),
      drawGrade(sample, one.id), !isMissing && typeof sample.scores?.[at] === "number" && el("span", { class: "muted small" },
        `score ${formatNumber(sample.scores[at])}`),
      isMissing && el("span", { class: "chip" }, one.rank ? `at rank ${one.rank}` : "not retrieved")),
    text);
  const isLong = (one.text?.length ?? 0) > 260;
  const toggle = isLong && el("button", { type: "button", class: "quiet", "aria-expanded": "false",
    on: { click: () => setOpen(!node.classList.contains("open")) } }, "Show all");
  if (toggle) node.append(toggle);
  else node.classList.add("whole");
  function setOpen(isOpen) {
    node.classList.toggle("open", isOpen);
    if (toggle) {
      toggle.setAttribute("aria-expanded", String(isOpen));
      toggle.textContent = isOpen ? "Show less" : "Show all";
    }
  }
  return { node, text, content: one.text ?? "", peek: (isOpen) => node.classList.toggle("peek", isOpen) };
}

/** The relevant documents that the system did not retrieve. */
async function drawMissing(sample, documents) {
  const ids = new Set(documents.map((one) => one.id));
  const missing = (sample?.relevant ?? []).filter((one) => isRelevant(one) && !ids.has(one.doc_id));
  if (!missing.length) return null;
  missing.sort((a, b) => b.relevance - a.relevance);
  const known = await Promise.all(missing.slice(0, 20).map(async (one) =>
    ({ id: one.doc_id, rank: one.rank,
      text: one.document === null || one.document === undefined ? null : (await readDocument(one.document)).text })));
  return el("div", { class: "documents missing" }, el("h4", {}, "Relevant, but missing here"),
    el("ul", {}, known.map((one, at) => drawDocument(one, at, sample, true).node)), missing.length > known.length &&
      el("p", { class: "muted" }, `and ${missing.length - known.length} more`));
}
