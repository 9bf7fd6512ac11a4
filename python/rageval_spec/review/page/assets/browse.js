// The list of all tasks, with a filter and a search; what it finds is what the keys step through.

function showList() {
  document.querySelector("dialog")?.remove();
  const rows = el("ul", { class: "tasks" });
  const total = el("p", { class: "muted small", role: "status" });
  const counts = countStates();
  const search = el("input", { type: "search", "aria-label": "Search questions and ids", placeholder: "Search questions and ids", value: work.search,
    on: { input: () => { work.search = search.value.trim(); update(); } } });
  const moveOn = (event) => {
    const all = [...rows.querySelectorAll(".row")];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowDown: all[at + 1], ArrowUp: at > 0 ? all[at - 1] : search, Enter: event.target === search ? all[0] : null }[event.key];
    if (!to || event.target.tagName === "SELECT") return;
    event.preventDefault();
    if (event.key === "Enter") to.click();
    else to.focus();
  };
  const options = FILTERS.map(([key, text]) => [key, ["done", "skipped", "started"].includes(key) ? `${text} (${counts[key]})` : text]);
  const dialog = el("dialog", { class: "browser", "aria-labelledby": "list-title", on: { keydown: moveOn } },
    el("div", { class: "bar" }, el("h2", { id: "list-title" }, "All tasks"),
      el("button", { type: "button", class: "icon", "aria-label": "Close", on: { click: () => dialog.close() } }, "✕")),
    el("div", { class: "bar" }, search, select("Show", options, work.filter, (key) => { work.filter = key; update(); })), total, rows);
  function update() {
    const found = work.order.filter(passes);
    total.textContent = `${formatCount(found.length, "task")} found`;
    refill(rows, found.map((at) => drawRow(at, dialog)));
  }
  update();
  dialog.addEventListener("close", () => {
    dialog.remove();
    const crumbs = document.getElementById("crumbs");
    if (crumbs) refill(crumbs, drawCrumbs());
  });
  document.body.append(dialog);
  dialog.showModal();
  search.focus();
  rows.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
}

function drawRow(at, dialog) {
  const { sign, word, kind } = STATES[work.states[at]];
  const task = sheet.tasks[at];
  return el("li", {}, el("button", { type: "button", class: "row", "aria-current": at === work.at ? "true" : null,
    on: { click: () => { dialog.close(); showTask(at); } } },
    el("span", { class: `state ${kind}` }, el("span", { "aria-hidden": "true" }, sign), spoken(word)),
    el("bdi", { class: "question" }, task.question || "(empty)"), el("bdi", { class: "muted small" }, task.query_id),
    entryOf(at).comment && el("span", { class: "muted small" }, "✎", spoken("has a comment"))));
}

function clearFilter() {
  work.filter = "all";
  work.search = "";
  refill(document.getElementById("crumbs"), drawCrumbs());
  document.getElementById("task-title").focus();
}
