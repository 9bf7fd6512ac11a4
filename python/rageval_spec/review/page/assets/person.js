// Everything about the person who labels: files, settings, and making room for somebody else.

function showMessage(title, ...content) {
  document.querySelector("dialog")?.remove();
  const dialog = el("dialog", { "aria-labelledby": "message-title" }, el("h2", { id: "message-title" }, title), content,
    el("div", { class: "moves" }, el("button", { type: "button", class: "toggle", on: { click: () => dialog.close() } }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Loads a file, changes settings, or lets another person work. */
function showPerson() {
  const error = el("p", { class: "failure", role: "alert", hidden: true });
  const load = pickFile("Load a saved file", (file) => {
    try {
      const found = parseFile(file.text);
      if (found.annotator !== work.annotator) throw new Error(`Its labels are by ${found.annotator}, and you are ${work.annotator}.`);
      dialog.close();
      tellMerged(found);
    } catch (problem) {
      error.hidden = false;
      refill(error, name(file.name), ` was not loaded. ${problem.message}`);
    }
  });
  const dialog = showMessage("Your work", el("p", {}, "You label as ", name(work.annotator, { class: "name strong" }), ". ",
    !usesFiles ? KEPT : canKeep ? "What you enter is kept in this browser." : "This browser keeps nothing: save the file before you close the page."), error,
    el("div", { class: "settings" },
      drawSetting("Go on by itself when a task is labelled", work.goesOn, (isOn) => { work.goesOn = isOn; keepAbout(); }),
      drawSetting("Answer and move with single keys", usesKeys(), (isOn) => keep(KEYS_OFF, isOn ? null : true))),
    el("div", { class: "known" }, usesFiles && load, el("button", { type: "button", class: "quiet", on: { click: () => { dialog.close(); leave(); } } },
      "Let another person label"), usesFiles && drawForget(() => dialog.close())));
}

function drawSetting(text, isOn, change) {
  const box = el("input", { type: "checkbox", checked: isOn, on: { change: () => change(box.checked) } });
  return el("label", { class: "check" }, box, el("span", {}, text));
}

/** A button that deletes the person's work from the browser; it takes two clicks. */
function drawForget(close) {
  const count = listLabels().length;
  const button = el("button", { type: "button", class: "quiet bad", on: { click: () => {
    if (!button.dataset.asked) {
      button.dataset.asked = "yes";
      button.textContent = `Really delete ${formatCount(count, "label")}? Files that you saved stay.`;
      return;
    }
    forgetPerson(work.annotator);
    close();
    showWelcome();
  } } }, "Delete my work from this browser");
  return button;
}

function leave() {
  keepPerson(null);
  showWelcome();
}

const KEYS_OFF = "rageval-review keys off";

/** Whether single keys act; people who dictate can turn them off. */
function usesKeys() {
  return readKey(KEYS_OFF) !== true;
}
