// The nuggets of a question, which people edit where answers are judged. The label of the task is the list as it was, and as it is now.

const NUGGET_KEYS = [["↑  ↓", "Previous or next nugget"], ["e", "Edit the text; Enter splits it at the cursor, Esc leaves it"], ["v", "Vital or okay"], ["n", "New nugget"],
  ["p", "Split: a second nugget with the same text"], ["m", "Merge: m on the one that stays, then m on the other"], ["d", "Delete"],
  ["g", "Give an answer, if the nugget is a question"], ["b", "All of its answers are needed (AND), or one is enough (OR)"],
  ["y", "The nuggets are right as they are"], ["Enter", "Next question that is not checked"], ["j  k", "Next or previous question"],
  ["x", "Skip the question"], ["u", "Undo"], ["c", "Comment; Esc leaves it, Ctrl+Enter goes on"], ["l", "List of all questions"],
  ["s", "Save the file"], ["?", "These keys"]];

/** The nugget that keys act on, and the one that another is to be merged into; -1 for none. */
const bank = { at: 0, into: -1 };

const wasNuggets = () => JSON.parse(shown.task.answer);
const slotKey = () => shown.task.slots[0].key;
const nuggetsNow = () => entryOf(shown.at).labels[slotKey()]?.value.now ?? wasNuggets();

function changeNuggets(alter, kind = null) {
  changeEntry(shown.at, (entry) => {
    const now = structuredClone(nuggetsNow());
    alter(now);
    entry.labels[slotKey()] = { value: { was: wasNuggets(), now }, time: new Date().toISOString(), saw_judge: false };
    entry.skipped = false;
  }, kind);
  drawProgress();
}

/** Changes the list, draws it again, and puts the focus on the nugget, or into its text. */
function alterNuggets(alter, said, isEdited = false) {
  changeNuggets(alter);
  redrawForm();
  focusNugget(isEdited);
  announce(said);
}

function focusNugget(isEdited = false) {
  const node = document.querySelectorAll("#nuggets .nugget")[bank.at];
  (isEdited ? node?.querySelector("textarea") : node)?.focus();
}

function redrawNuggets() {
  const list = nuggetsNow();
  bank.at = Math.max(0, Math.min(bank.at, list.length - 1));
  refill(document.getElementById("nuggets"),
    el("ol", {}, list.map(drawNugget)),
    !list.length && el("p", { class: "failure" }, "No nugget is left: the question will have no value."),
    el("button", { type: "button", class: "toggle", "aria-keyshortcuts": "n", on: { click: addNugget } }, "New nugget", hint("N")));
  tellFaults();
  chooseNugget(bank.at);
}

function drawNugget(nugget, at) {
  const act = (text, key, run) => el("button", { type: "button", class: "toggle small", "aria-label": `${text}: nugget ${at + 1}`, on: { click: () => { chooseNugget(at); run(); } } }, text, hint(key.toUpperCase()));
  const answers = nugget.answers ?? [];
  return el("li", { class: "nugget", tabindex: "-1", "aria-label": `Nugget ${at + 1}, ${nugget.importance}: ${nugget.text}`, on: { focusin: () => chooseNugget(at) } },
    el("textarea", { class: "fact", rows: "1", dir: "auto", "aria-label": `Text of nugget ${at + 1}`,
      on: { input: (event) => { changeNuggets((list) => { list[at].text = event.target.value; }, `nugget ${at}`); tellFaults(); } } }, nugget.text),
    answers.length > 0 && el("ul", { class: "answers" }, answers.map((answer, place) => el("li", {},
      el("input", { value: answer, dir: "auto", "aria-label": `Answer ${place + 1} of nugget ${at + 1}`,
        on: { input: (event) => { changeNuggets((list) => { list[at].answers[place] = event.target.value; }, `answer ${at} ${place}`); tellFaults(); } } }),
      el("button", { type: "button", class: "icon", "aria-label": `Remove answer ${place + 1} of nugget ${at + 1}`,
        on: { click: () => removeAnswer(at, place) } }, "✕")))),
    el("p", { class: "failure", role: "status", hidden: true }),
    el("div", { class: "acts" },
      el("button", { type: "button", class: `toggle small importance ${nugget.importance}`, "aria-label": `Nugget ${at + 1} is ${nugget.importance}; change it`,
        on: { click: () => { chooseNugget(at); toggleImportance(); } } }, nugget.importance, hint("V")),
      answers.length > 1 && act(nugget.aggregator === "AND" ? "all are needed (AND)" : "one is enough (OR)", "b", toggleAggregator),
      act("Answer", "g", addAnswer), act("Split", "p", splitNugget),
      act(bank.into === at ? "Merge with …" : bank.into >= 0 ? `Merge into ${bank.into + 1}` : "Merge", "m", mergeNugget), act("Delete", "d", deleteNugget),
      nugget.documents?.length > 0 && el("span", { class: "muted small sources" }, "from ", nugget.documents.join(", "))));
}

function chooseNugget(at) {
  bank.at = at;
  document.querySelectorAll("#nuggets .nugget").forEach((node, place) => {
    node.classList.toggle("active", place === at);
    node.classList.toggle("into", place === bank.into);
  });
}

/** What `review import` would refuse, said where it is. */
function tellFaults() {
  const list = nuggetsNow();
  document.querySelectorAll("#nuggets .nugget").forEach((node, at) => {
    const { text, answers } = list[at];
    const same = list.findIndex((one, other) => other < at && one.text.trim() === text.trim());
    const fault = !text.trim() ? "Write the fact, or delete the nugget." : same >= 0 ? `Nugget ${same + 1} has the same text.`
      : answers?.some((answer) => !answer.trim()) ? "Write the answer, or remove it." : "";
    const told = node.querySelector(":scope > .failure");
    told.hidden = !fault;
    told.textContent = fault;
  });
}

/** An id that no nugget has or had, so that a new fact is never taken for another. */
function newId(list) {
  const taken = new Set([...list, ...wasNuggets()].map((one) => one.id));
  let number = list.length + 1;
  while (taken.has(String(number))) number++;
  return String(number);
}

function addNugget() {
  const at = nuggetsNow().length;
  bank.at = at;
  alterNuggets((list) => list.push({ id: newId(list), text: "", importance: "vital" }), "A new nugget. Write the fact.", true);
}

function deleteNugget() {
  if (!nuggetsNow().length) return;
  bank.into = -1;
  alterNuggets((list) => list.splice(bank.at, 1), "Deleted. U brings it back.");
}

function toggleImportance() {
  if (!nuggetsNow().length) return;
  const other = nuggetsNow()[bank.at].importance === "vital" ? "okay" : "vital";
  alterNuggets((list) => { list[bank.at].importance = other; }, `Nugget ${bank.at + 1} is ${other}.`);
}

function toggleAggregator() {
  const nugget = nuggetsNow()[bank.at];
  if ((nugget?.answers ?? []).length < 2) return;
  const other = nugget.aggregator === "AND" ? "OR" : "AND";
  alterNuggets((list) => { list[bank.at].aggregator = other; }, other === "AND" ? "All answers are needed." : "One answer is enough.");
}

function addAnswer() {
  if (!nuggetsNow().length) return;
  alterNuggets((list) => { Object.assign(list[bank.at], { answers: [...(list[bank.at].answers ?? []), ""], aggregator: list[bank.at].aggregator ?? "OR" }); }, "Write the answer.");
  [...document.querySelectorAll("#nuggets .nugget")[bank.at].querySelectorAll("input")].at(-1).focus();
}

function removeAnswer(at, place) {
  alterNuggets((list) => {
    list[at].answers.splice(place, 1);
    if (!list[at].answers.length) delete list[at].answers;
    if (!list[at].answers) delete list[at].aggregator;
  }, "The answer is removed.");
}

/** Enter in a text: splits it where the cursor is in the middle, and else leaves it. */
function endFact(field) {
  if (field.selectionStart > 0 && field.selectionStart < field.value.length) splitNugget();
  else focusNugget();
}

/** Makes two of one: what is behind the cursor goes into the second, or all of it if the text is not being edited. */
function splitNugget() {
  const nugget = nuggetsNow()[bank.at];
  if (!nugget) return;
  const field = document.activeElement?.matches?.("#nuggets .nugget.active .fact") ? document.activeElement : null;
  const place = field ? field.selectionStart : nugget.text.length;
  const isCut = place > 0 && place < nugget.text.length;
  alterNuggets((list) => {
    const second = { ...structuredClone(nugget), id: newId(list), text: isCut ? nugget.text.slice(place).trim() : nugget.text };
    if (isCut) list[bank.at].text = nugget.text.slice(0, place).trim();
    list.splice(++bank.at, 0, second);
  }, "Split. Edit the second one.", true);
}

/** The first time, takes note of the nugget that stays; then merges the one that is chosen into it. */
function mergeNugget() {
  const { at, into } = bank;
  if (into < 0 || into === at) {
    bank.into = into === at ? -1 : at;
    redrawNuggets();
    focusNugget();
    say(bank.into < 0 ? "Nothing is merged." : `Choose the nugget to merge into ${at + 1}, and press m again.`);
    return;
  }
  const join = (first, second) => [...new Set([...(first ?? []), ...(second ?? [])])];
  bank.into = -1;
  alterNuggets((list) => {
    const [kept, gone] = [list[into], list[at]];
    if (kept.text.trim() !== gone.text.trim()) kept.text = `${kept.text.trim()}; ${gone.text.trim()}`;
    if (gone.importance === "vital") kept.importance = "vital";
    for (const part of ["documents", "answers"]) if (kept[part]?.length || gone[part]?.length) kept[part] = join(kept[part], gone[part]);
    if (kept.answers) kept.aggregator ??= gone.aggregator ?? "OR";
    list.splice(at, 1);
    bank.at = at < into ? into - 1 : into;
  }, "Merged. Edit the text.", true);
}

function confirmNuggets() {
  const isDone = slotKey() in entryOf(shown.at).labels;
  if (!isDone) alterNuggets(() => {}, "The nuggets are right as they are. Enter goes on.");
  else say("This question is checked already. U undoes the last change.");
}

function moveNugget(step) {
  const nodes = document.querySelectorAll("#nuggets .nugget");
  const isInside = document.activeElement?.closest?.("#nuggets .nugget");
  chooseNugget(Math.max(0, Math.min(nodes.length - 1, isInside ? bank.at + step : bank.at)));
  focusNugget();
}

/** What a key does to the nuggets. */
function nuggetAction(key) {
  return { ArrowUp: () => moveNugget(-1), ArrowDown: () => moveNugget(1), Delete: deleteNugget, Backspace: () => {}, ArrowLeft: () => {}, ArrowRight: () => {},
    e: () => focusNugget(true), v: toggleImportance, n: addNugget, p: splitNugget, m: mergeNugget, d: deleteNugget, g: addAnswer, b: toggleAggregator,
    y: confirmNuggets, a: () => {}, o: () => {}, Escape: () => { if (bank.into >= 0) { bank.into = -1; redrawNuggets(); focusNugget(); } } }[key];
}

/** The panel beside the nuggets: what was changed so far. */
function drawNuggetPanel() {
  const changes = [...listNuggetChanges(wasNuggets(), nuggetsNow())];
  const isDone = slotKey() in entryOf(shown.at).labels;
  return el("div", { class: "panel nuggets active" }, el("h2", {}, isDone ? (changes.length ? "Changed" : "Checked: right as they are") : "Not checked"),
    changes.length > 0 ? el("ul", { class: "changes" }, changes.map(([sign, text, kind]) => el("li", {}, el("span", { class: `sign ${kind}` }, sign), el("span", { dir: "auto" }, text))))
      : el("button", { type: "button", class: "option good", "aria-pressed": String(isDone), "aria-keyshortcuts": "y", "data-name": "right", on: { click: confirmNuggets } }, "Right as they are", hint("Y")));
}

function* listNuggetChanges(was, now) {
  const show = ({ text, importance, answers, aggregator }) => `${text} (${[importance, answers?.length > 0 && answers.join(` ${aggregator ?? "OR"} `)].filter(Boolean).join("; ")})`;
  const after = new Map(now.map((one) => [one.id, one]));
  for (const one of was) {
    if (!after.has(one.id)) yield ["−", show(one), "bad"];
    else if (show(after.get(one.id)) !== show(one)) yield ["~", `${show(one)} → ${show(after.get(one.id))}`, "weak"];
  }
  for (const one of now) if (!was.some((before) => before.id === one.id)) yield ["+", show(one), "good"];
}
