// The page: its header, moving from task to task, and the keyboard.

const KEYS = [["1 … 9", "Answer: the grade (t is 10); 1, 2 or 3 for a claim"], ["y  n", "Answer: yes, no"], ["←  →", "Previous or next judgement"],
  ["⌫", "Clear the judgement"], ["Enter", "Next task that is not labelled"], ["j  k", "Next or previous task"], ["x", "Skip the task"],
  ["u", "Undo"], ["c", "Comment; Esc leaves it, Ctrl+Enter goes on"], ["a", "Show or hide all contexts"], ["o", "Show or hide the judge's opinion"],
  ["l", "List of all tasks"], ["s", "Save the file"], ["?", "These keys"]];

const listKeys = () => (sheet.subject === "nuggets" ? NUGGET_KEYS : KEYS);

function drawTop() {
  refill(document.getElementById("top"),
    el("div", { class: "brand" }, el("span", { class: "dot", "aria-hidden": "true" }, "✎"), name(sheet.name)),
    work && el("div", { class: "progress", id: "progress" }),
    el("div", { class: "tools" },
      work && [el("button", { type: "button", class: "toggle", "aria-keyshortcuts": "l", on: { click: showList } }, "Tasks"),
        usesFiles && el("button", { type: "button", class: "toggle", id: "save", "aria-keyshortcuts": "s", on: { click: save } }),
        el("button", { type: "button", class: "toggle person", title: "Files, and another person", on: { click: showPerson } }, name(work.annotator))],
      el("button", { type: "button", class: "icon", "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)",
        on: { click: () => showKeys(listKeys()) } }, "?"),
      el("button", { type: "button", class: "icon", id: "theme", on: { click: changeTheme } })));
  applyTheme(readTheme());
  if (work) drawProgress();
}

function drawProgress() {
  const counts = countStates();
  const total = sheet.tasks.length;
  const rest = estimateRest();
  const text = [`${counts.done.toLocaleString("en")} of ${total.toLocaleString("en")} ${subject.done}`,
    counts.skipped > 0 && `${counts.skipped} skipped`, rest !== null && isAnyWaiting() && describeRest(rest)].filter(Boolean).join(" · ");
  refill(document.getElementById("progress"), el("progress", { max: total, value: counts.done, "aria-label": `Tasks ${subject.done}` }),
    el("span", { class: "small", id: "so-far" }, text));
  if (usesFiles) refill(document.getElementById("save"), "Save file",
    work.unsaved > 0 && [el("span", { class: "unsaved", "aria-hidden": "true" }), spoken(" (there are changes that no file has)")]);
  if (!canKeep && !document.getElementById("not-kept")) document.getElementById("content").prepend(drawNotKept());
}

function isAnyWaiting() {
  return work.states.some((_, at) => isWaiting(at));
}

/** Begins or continues the work of a person. */
function enter(annotator, isShuffled) {
  const last = openWork(annotator, isShuffled);
  refill(document.getElementById("content"), drawNotKept(), el("div", { class: "desk", id: "desk" }));
  drawTop();
  const first = sheet.tasks[last] ? last : findTask(1, isWaiting);
  return showTask(first >= 0 ? first : work.order[0]);
}

let turn = 0;

async function showTask(at) {
  if (at === undefined || at < 0) return;
  const own = ++turn;
  const desk = document.getElementById("desk");
  try {
    const task = await readTask(at);
    if (own !== turn) return;
    work.at = at;
    const entry = entryOf(at);
    const slot = task.slots.findIndex((one) => !(one.key in entry.labels));
    Object.assign(shown, { at, task, slot: Math.max(0, slot), isTold: sheet.shows_judge, since: Date.now() });
    if (shown.isTold) noteSeen(at);
    refill(desk, drawTask(), drawForm());
    redrawForm();
    keepAbout();
    drawProgress();
    window.scrollTo(0, 0);
    document.getElementById("task-title").focus({ preventScroll: true });
    readAhead(work.order[work.order.indexOf(at) + 1]);
  } catch (error) {
    refill(desk, el("p", { class: "failure" }, `This task could not be read: ${error.message}`));
  }
}

/** Draws the task again after a change from elsewhere. */
function redrawAll() {
  if (shown.at < 0) return;
  const comment = document.getElementById("comment");
  if (document.activeElement !== comment) comment.value = entryOf(shown.at).comment;
  redrawForm();
  drawProgress();
}

function go(step) {
  const at = findTask(step, passes);
  if (at < 0) say(step > 0 ? "This is the last task." : "This is the first task.");
  else showTask(at);
}

/** Goes to the next task that waits for labels; if none does, says what to do now. */
function goOn() {
  const isFiltered = work.filter !== "all" || work.search;
  const at = findTask(1, (one) => one !== shown.at && isWaiting(one) && (!isFiltered || passes(one)), true);
  if (at >= 0) showTask(at);
  else if (isFiltered && isAnyWaiting()) go(1);
  else if (isWaiting(shown.at)) say("All other tasks are done. This one is not yet.");
  else showDone();
}

function showDone() {
  const { done, skipped } = countStates();
  const dialog = showMessage("All tasks are done", el("p", {}, `You ${subject.done} ${formatCount(done, "task")}${skipped ? ` and skipped ${skipped}` : ""}. `,
    usesFiles ? "Save the file and give it to the person who sent you this page." : KEPT),
    usesFiles && el("button", { type: "button", class: "main", on: { click: () => { dialog.close(); save(); } } }, "Save file"));
}

function skip() {
  if (work.states[shown.at] !== "done") changeEntry(shown.at, (entry) => { entry.skipped = true; });
  drawProgress();
  goOn();
}

async function takeBack() {
  const at = undo();
  if (at < 0) {
    say("There is nothing to undo.");
    return;
  }
  if (at !== shown.at) await showTask(at);
  redrawAll();
  say("Undone.");
}

function save() {
  if (!usesFiles) {
    say(KEPT);
    return;
  }
  if (!work.entries.size) {
    say("There is nothing to save yet.");
    return;
  }
  const file = saveFile();
  drawProgress();
  say(`Saved as ${file} in your downloads.`);
}

let fading = 0;

/** A short message at the edge of the page, which screen readers speak. */
function say(text) {
  document.getElementById("said")?.remove();
  document.body.append(el("p", { class: "said", id: "said", "aria-hidden": "true" }, text));
  announce(text);
  clearTimeout(fading);
  fading = setTimeout(() => document.getElementById("said")?.remove(), 6000);
}

function pressKey(event) {
  if (!work || shown.at < 0) return;
  if (event.key === "s" && (event.ctrlKey || event.metaKey) && !event.altKey) {
    event.preventDefault();
    save();
    return;
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    goOn();
    return;
  }
  if (isForOthers(event)) return;
  const field = event.target.closest?.("input, select, textarea");
  if (field?.matches(".fact") && event.key === "Enter") {
    event.preventDefault();
    endFact(field);
    return;
  }
  if (field) {
    if (event.key === "Escape") (field.closest(".nugget") ?? document.getElementById("task-title")).focus({ preventScroll: true });
    return;
  }
  if (event.key.length === 1 && !usesKeys()) return;
  const isControl = event.target.closest?.("button, summary, a");
  if (event.key === "Enter" || event.key === " ") {
    if (isControl || event.key === " ") return;
    event.preventDefault();
    goOn();
    return;
  }
  const act = actionOf(event.key);
  if (!act) return;
  event.preventDefault();
  act();
}

function actionOf(key) {
  const act = sheet.subject === "nuggets" && nuggetAction(key.length === 1 ? key.toLowerCase() : key);
  if (act) return act;
  const slot = shown.task.slots[shown.slot];
  const option = slot && criterionOf(slot).options.find((one) => one.key && one.key === key.toLowerCase());
  if (option) return () => answer(shown.slot, option.value);
  const keys = {
    j: () => go(1), k: () => go(-1), x: skip, u: takeBack, a: openContexts, l: showList, s: save, "?": () => showKeys(listKeys()),
    o: toggleTold, c: () => document.getElementById("comment").focus(),
    ArrowLeft: () => chooseSlot(shown.slot - 1), ArrowRight: () => chooseSlot(shown.slot + 1),
    Backspace: () => slot && (clearLabel(shown.at, slot), redrawAll()),
  };
  return keys[key.length === 1 ? key.toLowerCase() : key];
}

async function start() {
  try {
    prepare(await readPart("head"));
  } catch (error) {
    refill(document.getElementById("content"), el("p", { class: "blank" }, `This sheet could not be read: ${error.message}`));
    throw error;
  }
  tryKeeping();
  const { last } = readPeople();
  if (last !== null) await enter(last, false);
  else showWelcome();
  document.addEventListener("keydown", pressKey);
  window.addEventListener("storage", (event) => { if (followOther(event) >= 0) redrawAll(); });
  window.addEventListener("beforeunload", (event) => { if (work && !canKeep && work.unsaved > 0) event.preventDefault(); });
  document.body.dataset.ready = "";
}

start();
