// The page: its header, its views, the keyboard and the address.

const VIEWS = [["overview", "Overview"], ["questions", "Questions"], ["provenance", "How it was made"]];
let current = null;
let list = null;
let reading = 0;
const wide = window.matchMedia("(min-width: 901px)");

function drawTop() {
  const { headline, title } = report;
  refill(document.getElementById("top"),
    el("a", { class: "brand", href: "#" }, el("span", { class: `dot ${headline.verdict}`, "aria-hidden": "true" },
      SIGNS[headline.verdict]), name(title)),
    el("nav", { "aria-label": "Views" }, VIEWS.map(([view, text]) => el("a", { href: view === "overview" ? "#" : `#view=${view}`,
      "data-view": view }, text))),
    el("div", { class: "tools" },
      el("button", { type: "button", class: "icon", "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)",
        on: { click: () => showKeys(KEYS) } }, "?"),
      el("button", { type: "button", class: "icon", id: "theme", on: { click: changeTheme } })));
  applyTheme(readTheme());
}

function makeViews() {
  const content = document.getElementById("content");
  list = makeList(change);
  const card = el("div", { class: "reader", id: "reader", tabindex: "0", role: "region", "aria-label": "Question" });
  refill(content,
    el("div", { class: "view", id: "overview", hidden: true }),
    el("div", { class: "view workbench", id: "questions", hidden: true }, el("h1", { class: "sr" }, "Questions"), list.node, card),
    el("div", { class: "view", id: "provenance", hidden: true }));
}

/** Changes the state; `isTyping` replaces the entry in the history at each key. */
function change(changes, isTyping = false) {
  const next = { ...current, view: "questions", unknown: [], ...changes };
  if ("system" in changes && next.other === next.system) next.other = -1;
  if (!cellOf(next.system, next.metric)) next.metric = report.questions.cells.find((cell) => cell.system === next.system)?.metric ?? next.metric;
  const hash = writeHash(next);
  const opensPage = current.q < 0 && next.q >= 0 && !wide.matches;
  if (isTyping || (current.view === "questions" && !opensPage)) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  show(next);
}

function show(state) {
  const before = current;
  current = state;
  for (const [view] of VIEWS) {
    document.getElementById(view).hidden = view !== state.view;
    const link = document.querySelector(`nav [data-view="${view}"]`);
    if (view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (before?.view !== state.view) window.scrollTo(0, 0);
  if (state.view === "overview") drawOnce("overview", drawOverview);
  else if (state.view === "provenance") drawOnce("provenance", drawProvenance);
  else if (state.q < 0 && !state.missing && before?.view !== "questions" && wide.matches) showFirst(state);
  else showQuestions(state, before);
  document.getElementById("questions").classList.toggle("reading", state.q >= 0 || Boolean(state.missing));
}

function drawOnce(view, draw) {
  const node = document.getElementById(view);
  if (!node.firstChild) node.append(draw());
}

/** On a wide screen, the list opens with its first question. */
function showFirst(state) {
  list.update(state);
  const [first] = list.found();
  if (first === undefined) showQuestions(state, null);
  else change({ q: first, unknown: state.unknown });
}

/** What a link names that the evaluation does not have; null if it has everything. */
function drawUnknown(state) {
  if (!state.unknown.length) return null;
  const names = state.unknown.flatMap(([noun, text], at) => [at ? ", the " : "the ", `${noun} `, name(text)]);
  return el("p", { class: "notice" }, "The link names ", names, ", which this evaluation does not have.");
}

async function showQuestions(state, before) {
  list.update(state);
  const reader = document.getElementById("reader");
  const unknown = drawUnknown(state);
  if (state.q < 0) {
    if (state.missing) refill(reader, unknown, el("p", { class: "failure" }, "This evaluation has no question ", name(state.missing), "."));
    else refill(reader, unknown, el("p", { class: "blank" }, "Choose a question to read its answer, its documents and what the judges said.", el("br"),
      el("span", { class: "muted" }, "j and k go to the next and the previous question, / searches, ? shows all keys.")));
    if (unknown || state.missing) announce(reader.textContent);
    return;
  }
  const isSame = before?.view === "questions" && ["q", "system", "other", "metric"].every((key) => before[key] === state[key]) &&
    reader.querySelector(".card");
  if (isSame) {
    if (!unknown) reader.querySelector(".notice")?.remove();
    return;
  }
  const turn = ++reading;
  try {
    const card = await drawCardOf(state, change);
    if (turn !== reading) return;
    refill(reader, unknown, drawSteps(), card);
    reader.scrollTop = 0;
    announce(`${unknown ? `${unknown.textContent} ` : ""}${report.questions.text[state.q] ?? report.questions.id[state.q]}`);
  } catch (error) {
    refill(reader, el("p", { class: "failure" }, `This question could not be read: ${error.message}`));
  }
}

function drawSteps() {
  const found = list.found();
  const [place, total] = [found.indexOf(current.q), found.length];
  return el("div", { class: "steps" },
    el("button", { type: "button", class: "quiet back", on: { click: () => change({ q: -1 }) } }, "← All questions"),
    el("span", { class: "muted small" }, place >= 0 ? `${(place + 1).toLocaleString("en")} of ${total.toLocaleString("en")}` : ""),
    el("button", { type: "button", class: "icon", "aria-label": "Previous question", title: "Previous question (k)",
      on: { click: () => list.move(-1) } }, "↑"),
    el("button", { type: "button", class: "icon", "aria-label": "Next question", title: "Next question (j)",
      on: { click: () => list.move(1) } }, "↓"));
}

const KEYS = [["j", "Next question"], ["k", "Previous question"], ["/", "Search"], ["Enter", "Read the chosen question"],
  ["Esc", "Close, or leave the search"], ["o", "Overview"], ["?", "These keys"]];

function pressKey(event) {
  if (isForOthers(event)) return;
  const isField = event.target.closest?.("input, select, textarea");
  if (event.key === "Escape") {
    if (isField) isField.blur();
    else if (current.view === "questions" && current.q >= 0) change({ q: -1 });
    return;
  }
  if (isField) return;
  const keys = {
    j: () => step(1), k: () => step(-1), o: () => { location.hash = ""; }, "?": () => showKeys(KEYS),
    "/": () => { if (current.view !== "questions") change({}); list.focus(); },
    Enter: () => event.target.closest?.(".list") && document.getElementById("card-title")?.focus(),
  };
  if (!(event.key in keys)) return;
  if (event.key !== "Enter") event.preventDefault();
  keys[event.key]();
}

function step(by) {
  if (current.view !== "questions") change({});
  list.move(by);
}

async function start() {
  try {
    prepare(await readPart("head"));
  } catch (error) {
    refill(document.getElementById("content"), el("p", { class: "blank" }, `This report could not be read: ${error.message}`));
    throw error;
  }
  drawTop();
  makeViews();
  show(readHash(location.hash));
  window.addEventListener("hashchange", () => show(readHash(location.hash)));
  window.addEventListener("popstate", () => show(readHash(location.hash)));
  window.addEventListener("beforeprint", () => {
    drawOnce("overview", drawOverview);
    drawOnce("provenance", drawProvenance);
  });
  document.addEventListener("keydown", pressKey);
  requestAnimationFrame(() => setTimeout(() => performance.mark("rageval-drawn")));
  document.body.dataset.ready = "";
}

start();
