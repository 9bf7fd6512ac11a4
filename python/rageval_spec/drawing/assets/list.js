// The list of questions: filters, search, and rows that exist only while they are in view.

const LINE = 66;
const SPARE = 6;

/** Draws the filters and the list; `open` shows a question. Gives `{node, update, move}`. */
function makeList(change) {
  let state = null;
  let found = [];
  let figures = null;
  const inner = el("div", { class: "rows", role: "presentation" });
  const box = el("div", { class: "list", role: "listbox", tabindex: "0", "aria-label": "Questions",
    on: { scroll: () => schedule(paint), keydown: press } }, inner);
  const total = el("p", { class: "total", role: "status" });
  const notice = el("div");
  const filters = el("div", { class: "filters" });
  const search = el("input", { type: "search", id: "search", placeholder: "Search questions and answers",
    "aria-label": "Search questions and answers",
    autocomplete: "off", spellcheck: "false", on: { input: () => schedule(type) } });
  const node = el("section", { class: "browse", "aria-label": "List of questions" },
    el("div", { class: "searching" }, search, el("kbd", { "aria-hidden": "true" }, "/")), filters, notice, total, box);

  const waiting = new Set();
  function schedule(act) {
    if (waiting.has(act)) return;
    waiting.add(act);
    requestAnimationFrame(() => {
      waiting.delete(act);
      act();
    });
  }

  function type() {
    if (search.value.trim()) readAnswers(progress);
    change({ search: search.value }, true);
  }

  let refresh = 0;
  function progress(share) {
    clearTimeout(refresh);
    refresh = setTimeout(() => state.search && find(), share === 1 ? 0 : 120);
  }

  function find() {
    found = selectQuestions(state);
    figures = measure(state);
    const isAll = found.length === report.count;
    const reading = state.search && answersRead < 1 && report.questions.answering.length > 0 ? " · reading answers" : "";
    total.textContent = (isAll ? formatCount(found.length,
      "question") : `${found.length.toLocaleString("en")} of ${formatCount(report.count, "question")}`) + (report.part ? ` shown, of ${report.part.total.toLocaleString("en")}` : "") + (figures.against?.isEarlier ? ` · changes against ${figures.against.name}` : "") + reading;
    inner.style.height = `${found.length * LINE}px`;
    box.classList.toggle("empty", !found.length);
    paint();
  }

  function paint() {
    const from = Math.max(0, Math.floor(box.scrollTop / LINE) - SPARE);
    const to = Math.min(found.length, Math.ceil((box.scrollTop + box.clientHeight) / LINE) + SPARE);
    const rows = [];
    for (let place = from; place < to; place++) rows.push(drawLine(place));
    refill(inner, rows, found.length ? null : el("p", { class: "blank" }, "No question matches these filters."));
    const active = document.getElementById(`question-${state.q}`);
    if (active) box.setAttribute("aria-activedescendant", active.id);
    else box.removeAttribute("aria-activedescendant");
  }

  function drawLine(place) {
    const at = found[place];
    const { questions } = report;
    const [value, difference] = [figures.value(at), figures.change(at)];
    const metric = report.results.metrics[state.metric];
    const better = difference === null ? 0 : judgeChange(metric, difference);
    const cause = questions.causeOf.get(state.system)?.get(at);
    const isBroken = questions.failedOf.get(state.system)?.has(at) || figures.cell?.errors.has(at);
    const line = el("div", { class: "line", role: "option", id: `question-${at}`, "aria-selected": String(at === state.q),
      "aria-posinset": place + 1,
      "aria-setsize": found.length, on: { click: () => change({ q: at }) } },
      el("div", { class: "what" },
        el("div", { class: "question", dir: "auto" }, questions.text[at] ?? questions.id[at]),
        el("div", { class: "under" }, name(questions.id[at]), cause && el("span", { class: `chip ${cause}` }, cause), isBroken &&
          el("span", { class: "chip bad" }, "✗ failed"))),
      el("div", { class: "figure" }, el("span", { class: "strong" }, formatValue(metric, value)),
        difference !== null && el("span", { class: `change ${["bad", "none", "good"][better + 1]}` },
          describeChange(metric, difference))));
    line.style.transform = `translateY(${place * LINE}px)`;
    return line;
  }

  function press(event) {
    const page = Math.max(1, Math.floor(box.clientHeight / LINE) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move(steps[event.key]);
  }

  /** Opens the question that is `step` places further down. */
  function move(step) {
    if (!found.length) return;
    const now = found.indexOf(state.q);
    const next = now < 0 ? 0 : Math.min(found.length - 1, Math.max(0, now + step));
    change({ q: found[next] });
    reveal(next);
  }

  function reveal(place) {
    const top = place * LINE;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + LINE > box.scrollTop + box.clientHeight) box.scrollTop = top + LINE - box.clientHeight;
    schedule(paint);
  }

  function update(next) {
    const isSame = state !== null && ["system", "other", "metric", "below", "slice", "cause", "regressed", "failed", "search",
      "sort", "dataset"]
      .every((key) => state[key] === next[key]);
    const isNew = state === null || state.q !== next.q;
    state = next;
    refill(notice, drawUnknown(state));
    if (search.value !== state.search && document.activeElement !== search) search.value = state.search;
    if (isSame) paint();
    else {
      drawFilters(filters, state, change);
      if (state.search) readAnswers(progress);
      box.scrollTop = 0;
      find();
    }
    const place = found.indexOf(state.q);
    if (isNew && place >= 0) reveal(place);
  }

  new ResizeObserver(() => state && schedule(paint)).observe(box);
  return { node, update, move, focus: () => { search.focus(); search.select(); }, found: () => found };
}

/** The filters; each change is given to `change`. The element that had the focus keeps it. */
function drawFilters(filters, state, change) {
  const { results, questions } = report;
  const focused = document.activeElement?.closest?.("[data-filter]")?.dataset.filter;
  const numbered = (list) => list.map((one, at) => [String(at), one]);
  const own = questions.cells.filter((cell) => cell.system === state.system).map((cell) => [String(cell.metric),
    results.metrics[cell.metric]]);
  const known = [...new Set(questions.cells.map((cell) => cell.system))].map((at) => [String(at), results.systems[at]]);
  const wrap = (key, field) => {
    field.dataset.filter = key;
    return field;
  };
  const pick = (label, key, options, value) => wrap(key, select(label, options, String(value),
    (chosen) => change({ [key]: Number(chosen) })));
  const base = baseOf(state.system, state.metric, state.other);
  const causes = listCauses();
  const flag = (key, text) => wrap(key, el("button", { type: "button", class: "toggle", "aria-pressed": String(state[key]),
    on: { click: () => change({ [key]: !state[key] }) } }, text));
  refill(filters,
    results.datasets.length > 1 && pick("Dataset", "dataset", [["-1", "all"], ...numbered(results.datasets)], state.dataset),
    pick("System", "system", known, state.system),
    known.length > 1 && pick("Compare with", "other", [["-1", "no other"], ...known.filter(([at]) => Number(at) !== state.system)],
      state.other),
    pick("Metric", "metric", own, state.metric),
    wrap("below", el("label", { class: "field short" }, el("span", {}, "Below"), el("input", { type: "number", step: "any",
      inputmode: "decimal", value: state.below ?? "", placeholder: "any",
      on: { input: (event) => change({ below: event.target.value === "" ? null : Number(event.target.value) }, true) } }))),
    questions.sliceNames.length > 0 && pick("Slice", "slice", [["-1", "all"], ...numbered(questions.sliceNames)], state.slice),
    causes.length > 0 && wrap("cause", select("Cause", [["", "all"], ...causes.map((one) => [one, one])], state.cause,
      (cause) => change({ cause }))),
    wrap("sort", select("Sort", SORTS.slice(0,
      base ? 5 : 2).concat(base ? [] : SORTS.slice(4)), state.sort, (sort) => change({ sort }))),
    el("div", { class: "flags" }, base && flag("regressed", "▼ regressed"), flag("failed", "✗ failed")));
  if (focused) filters.querySelector(`[data-filter="${focused}"]`)?.querySelector("select, input")?.focus();
  if (focused) filters.querySelector(`button[data-filter="${focused}"]`)?.focus();
}
