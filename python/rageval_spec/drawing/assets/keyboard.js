// What the keys of the page do, for those who ask.

/** Shows what each key does, from pairs of a key and its meaning. */
function showKeys(keys) {
  document.querySelector("dialog")?.remove();
  const dialog = el("dialog", { "aria-labelledby": "help-title" }, el("h2", { id: "help-title" }, "Keyboard shortcuts"),
    el("dl", { class: "keys" }, keys.map(([key, text]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)))),
    el("button", { type: "button", class: "toggle", on: { click: () => dialog.close() } }, "Close"));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Whether a key is not for the page: one of the browser's, or of a dialog that is open. */
function isForOthers(event) {
  return event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null;
}
