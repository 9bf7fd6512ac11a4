// The form beside the task: one panel for each criterion, a comment, and the guidelines of what is being judged.

function drawForm() {
  return el("section", { class: "form", "aria-label": "Your judgement" },
    el("div", { id: "panels" }),
    el("div", { id: "guidelines", class: "guidelines" }),
    el("div", { class: "footer" },
      el("label", { class: "field comment" }, el("span", {}, "Comment", hint("C")),
        el("textarea", { id: "comment", rows: "1", dir: "auto", placeholder: "Why, or what is unclear (optional)", on: { input: keepComment } },
          entryOf(shown.at).comment)),
      el("div", { class: "moves" },
        el("button", { type: "button", class: "toggle", "aria-keyshortcuts": "k", on: { click: () => go(-1) } }, "Back", hint("K")),
        el("button", { type: "button", class: "toggle", id: "skip", "aria-keyshortcuts": "x", on: { click: skip } }, "Skip", hint("X")),
        el("button", { type: "button", class: "toggle", "aria-keyshortcuts": "u", on: { click: takeBack } }, "Undo", hint("U")),
        el("button", { type: "button", class: "main", id: "next", "aria-keyshortcuts": "Enter", on: { click: goOn } }, "Next", hint("⏎")))));
}

function hint(key) {
  return el("kbd", { "aria-hidden": "true" }, key);
}

/** Draws what changes with a judgement; the focus stays where it is. */
function redrawForm() {
  const focused = document.activeElement?.closest("#panels button")?.dataset.name;
  const { task } = shown;
  const criteria = sheet.criteria.map((criterion, at) => ({ criterion, at, places: task.slots.map((_, place) => place)
    .filter((place) => task.slots[place].criterion === at) }));
  refill(document.getElementById("panels"), sheet.subject === "nuggets" ? drawNuggetPanel() : criteria.map(drawPanel));
  if (sheet.subject === "nuggets") redrawNuggets();
  if (focused) document.querySelector(`#panels [data-name="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  redrawRest();
}

/** Draws what depends on which judgement is the active one; the panels only change their frames. */
function redrawRest() {
  const { task } = shown;
  const active = task.slots[shown.slot]?.criterion;
  document.querySelectorAll("#panels .panel").forEach((panel, at) => {
    panel.classList.toggle("active", at === active);
    if (at === active) panel.setAttribute("aria-current", "true");
    else panel.removeAttribute("aria-current");
  });
  drawGuidelines();
  refill(document.getElementById("crumbs"), drawCrumbs());
  const answer = document.getElementById("answer");
  if (answer) markAnswer(answer, task);
  tintWords();
  document.getElementById("next").classList.toggle("ready", !isWaiting(shown.at));
}

function drawPanel({ criterion, at, places }) {
  const head = el("h2", { id: `panel-${at}` }, name(criterion.label), spoken(`: ${criterion.question}`));
  const body = !places.length ? el("p", { class: "muted small" }, "This answer has no claims to judge.")
    : criterion.kind === "claims" ? drawClaims(places) : drawOptions(places[0], `panel-${at}`);
  return el("div", { class: `panel ${criterion.kind}`, role: "group", "aria-labelledby": `panel-${at}`, on: { focusin: () => activate(places),
    click: (event) => { if (!event.target.closest("button")) activate(places); } } }, head, body);
}

/** Makes a panel the active one. Its buttons stay: one that a mouse presses must still be there when it lets go. */
function activate(places) {
  if (!places.length || places.includes(shown.slot)) return;
  shown.slot = findOpen(places);
  redrawRest();
}

/** The first of some places that has no label yet, or else the first. */
function findOpen(places) {
  const entry = entryOf(shown.at);
  return places.find((place) => !(shown.task.slots[place].key in entry.labels)) ?? places[0];
}

function drawClaims(places) {
  const { slots } = shown.task;
  const entry = entryOf(shown.at);
  const current = places.includes(shown.slot) ? shown.slot : findOpen(places);
  const claim = findClaim(shown.task, slots[current]);
  const chips = places.map((place) => {
    const label = entry.labels[slots[place].key];
    const { kind, sign, word } = label ? optionOf(slots[place], label.value) : { kind: "todo", sign: "", word: "not judged" };
    return el("button", { type: "button", class: `step ${kind} ${place === current ? "current" : ""}`, "data-name": `claim ${place}`,
      "aria-label": `Claim ${slots[place].claim + 1}: ${word}`, "aria-current": place === current ? "true" : null, on: { click: () => chooseSlot(place) } },
      String(slots[place].claim + 1), sign && el("span", { class: "sign" }, sign));
  });
  return [places.length > 1 && el("div", { class: "chips" }, chips),
    el("p", { class: "current-claim", dir: "auto", id: `claim-${current}` }, claim?.text ?? ""),
    drawOptions(current, `claim-${current}`)];
}

function drawOptions(place, labelledBy) {
  const slot = shown.task.slots[place];
  const value = entryOf(shown.at).labels[slot.key]?.value;
  const { options, kind } = criterionOf(slot);
  return el("div", { class: `options ${kind} ${options.length > 6 ? "many" : ""}`, role: "group", "aria-labelledby": labelledBy }, options.map((option) =>
    el("button", { type: "button", class: `option ${option.kind}`, "aria-pressed": String(value === option.value), title: option.means || null,
      "data-name": `${slot.criterion} ${option.value}`, "aria-keyshortcuts": option.key || null,
      on: { click: (event) => answer(place, option.value, event) } },
      kind === "yes_no" && el("span", { class: "sign", "aria-hidden": "true" }, option.sign), option.word,
      option.key && option.key !== option.word && options.length <= 6 && hint(option.key.toUpperCase()))));
}

/** The guidelines of what is being judged, and those for everything. */
function drawGuidelines() {
  const slot = shown.task.slots[shown.slot];
  const criterion = slot ? criterionOf(slot) : sheet.criteria[0];
  const value = slot && entryOf(shown.at).labels[slot.key]?.value;
  const steps = criterion.options.filter((option) => option.means);
  const ordered = criterion.kind === "rating" ? [...steps].reverse() : steps;
  refill(document.getElementById("guidelines"),
    el("h2", { class: "muted small" }, "Guidelines for ", name(criterion.label)),
    el("p", { class: "question", dir: "auto" }, criterion.question),
    steps.length > 0 && el("dl", { class: `scale ${criterion.kind}` }, ordered.map((option) =>
      el("div", { class: option.value === value ? "chosen" : "" }, el("dt", {}, option.word), el("dd", { dir: "auto" }, option.means)))),
    drawLines(criterion.lines),
    sheet.guidelines.trim() && [el("h3", {}, "For everything"), drawLines(sheet.guidelines.split("\n"))]);
}

function drawLines(lines) {
  const told = lines.filter((line) => line.trim());
  return told.length > 0 && el("ul", {}, told.map((line) => el("li", { dir: "auto" }, line)));
}

/** Makes one judgement the one that keys answer. The page does not scroll: the claim is in the form, too. */
function chooseSlot(place) {
  if (place < 0 || place >= shown.task.slots.length) return;
  shown.slot = place;
  redrawForm();
  document.querySelector(".panel.active")?.scrollIntoView({ block: "nearest" });
}

function answer(place, value, event) {
  const { slots } = shown.task;
  const slot = slots[place];
  const wasWaiting = isWaiting(shown.at);
  setLabel(shown.at, slot, value);
  const entry = entryOf(shown.at);
  const isSet = slot.key in entry.labels;
  const next = isSet ? slots.findIndex((one, at) => at > place && !(one.key in entry.labels)) : -1;
  const other = isSet && next < 0 ? slots.findIndex((one) => !(one.key in entry.labels)) : next;
  shown.slot = other >= 0 ? other : place;
  if (event?.detail) document.getElementById("task-title").focus({ preventScroll: true }); // a mouse leaves the keys to the page
  redrawForm();
  drawProgress();
  if (work.goesOn && wasWaiting && !isWaiting(shown.at)) {
    goOn();
    return;
  }
  const said = `${criterionOf(slot).label}${slot.claim === null ? "" : `, claim ${slot.claim + 1}`}: ${isSet ? optionOf(slot, value).word : "no answer"}.`;
  announce(other >= 0 ? `${said} Next: ${describeSlot(slots[other])}.` : isSet ? `${said} This task is labelled. Enter goes on.` : said);
}

function describeSlot(slot) {
  const claim = findClaim(shown.task, slot);
  return claim ? `claim ${slot.claim + 1}, ${claim.text}` : criterionOf(slot).label;
}

function keepComment(event) {
  const text = event.target.value.trim();
  changeEntry(shown.at, (entry) => { entry.comment = text; }, "comment");
  drawProgress();
}
