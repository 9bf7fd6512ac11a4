// The first view: who labels, and whether work is to be continued.

function showWelcome() {
  work = null;
  shown.at = -1;
  drawTop();
  const { names } = readPeople();
  const error = el("p", { class: "failure", role: "alert", hidden: true });
  const field = el("input", { id: "name", name: "name", required: true, autocomplete: "name", maxlength: "80",
    value: sheet.annotator || (names.length ? "" : readKey("rageval-review name") ?? "") });
  const shuffled = el("input", { type: "checkbox", id: "shuffled" });
  const begin = (annotator) => enter(annotator, shuffled.checked);
  const form = el("form", { class: "who", on: { submit: (event) => {
    event.preventDefault();
    const annotator = field.value.trim().replace(/\s+/g, " ");
    if (annotator) begin(annotator);
  } } },
    el("label", { class: "field" }, el("span", {}, "Your name"), field),
    el("label", { class: "check" }, shuffled, el("span", {}, "Show the tasks in an order of my own")),
    el("button", { type: "submit", class: "main" }, sheet.subject === "nuggets" ? "Start" : "Start labelling"));
  const load = pickFile("Continue from a saved file", async (file) => {
    try {
      const found = parseFile(file.text);
      await enter(found.annotator, shuffled.checked);
      tellMerged(found);
    } catch (problem) {
      error.hidden = false;
      refill(error, name(file.name), ` was not loaded. ${problem.message}`);
    }
  });
  refill(document.getElementById("content"), el("div", { class: "welcome" },
    el("h1", {}, name(sheet.name)),
    el("p", { class: "lead" }, describeWork()), drawNotKept(), error, sheet.tasks.length > 0 && form,
    sheet.tasks.length > 0 && names.length > 0 && el("div", { class: "known" }, el("p", { class: "muted small" }, "Kept in this browser:"),
      names.map((one) => el("button", { type: "button", class: "toggle", on: { click: () => begin(one) } }, "Go on as ", name(one)))),
    usesFiles && sheet.tasks.length > 0 && load,
    el("section", { class: "guidelines" }, el("h2", {}, "What you judge"),
      el("dl", { class: "scale" }, sheet.criteria.map((criterion) => el("div", {}, el("dt", {}, name(criterion.label)),
        el("dd", { dir: "auto" }, criterion.question))))),
    sheet.guidelines.trim() && el("section", { class: "guidelines" }, el("h2", {}, "Guidelines"), drawLines(sheet.guidelines.split("\n"))),
    el("p", { class: "muted small" }, KEPT)));
  field.focus();
}

function describeWork() {
  if (!sheet.tasks.length) return "This sheet has no answers to judge.";
  const asked = sheet.criteria.map((criterion) => criterion.label);
  const list = asked.length > 1 ? `${asked.slice(0, -1).join(", ")} and ${asked.at(-1)}` : asked[0];
  const its = sheet.tasks.length === 1 ? "its" : "their";
  if (sheet.subject === "nuggets") return `Check the nuggets of ${formatCount(sheet.tasks.length, "question")}, and edit them.`;
  return `Read ${formatCount(sheet.tasks.length, subject.noun)} and judge ${its} ${list}.`;
}

/** A button that reads a file of the reader's: `act` gets its name and text. */
function pickFile(text, act) {
  const input = el("input", { type: "file", accept: ".json,application/json", class: "sr", tabindex: "-1", "aria-label": text,
    on: { change: async () => {
      const [file] = input.files;
      input.value = "";
      if (file) act({ name: file.name, text: await file.text() });
    } } });
  return el("span", { class: "pick" }, el("button", { type: "button", class: "quiet", on: { click: () => input.click() } }, text), input);
}

function drawNotKept() {
  return !canKeep && el("p", { class: "notice", id: "not-kept" }, el("strong", {}, "This browser keeps nothing for this page. "),
    "Save the file before you close it, or your labels are lost.");
}

function tellMerged(found) {
  const { added, older } = mergeFile(found);
  redrawAll();
  say(`${formatCount(added, "label")} read${older ? `; ${formatCount(older, "label")} in the file ${older === 1 ? "is" : "are"} older than yours and ${older === 1 ? "was" : "were"} left out` : ""}.`);
}
