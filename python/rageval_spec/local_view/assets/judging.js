// One question judged again: the calls first, then the new verdict beside the old one.

const form = document.getElementById("edit");
const text = document.getElementById("text");
const outcome = document.getElementById("outcome");
const about = JSON.parse(form.dataset.about);
const names = Object.keys(about.old);
const metric = el("select", { id: "metric" }, names.map((one) => el("option", { value: one }, one)));
const original = text.value;

form.append(names.length ? el("label", { class: "field" }, "Metric", metric) : el("p", {}, "No metric of this record asks a judge."),
  el("button", { type: "submit", class: "act", disabled: !names.length }, "Count the calls"));

async function ask(action, more = {}) {
  const content = { text: text.value, metric: metric.value, dataset: about.dataset, system: about.system, q: about.q, ...more };
  const reply = await fetch(`/judge/${about.record}/${action}`, { method: "POST", body: JSON.stringify(content), headers: { "content-type": "application/json" } });
  const found = await reply.json();
  if (!reply.ok) throw new Error(found.error);
  return found;
}

function tell(...content) {
  refill(outcome, ...content);
}

async function attempt(waiting, act) {
  tell(el("p", {}, waiting));
  try {
    await act();
  } catch (error) {
    tell(el("pre", { class: "bad" }, error instanceof TypeError ? "The server does not answer; start 'rageval-spec view' again." : error.message));
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt("Counting the calls…", async () => {
    const plan = await ask("plan");
    tell(el("h2", {}, "Calls"), el("pre", {}, plan.told), showDiff(plan.diff),
      el("button", { type: "button", class: "act", id: "confirm", on: { click: () => judge(plan) } }, "Judge again"));
    document.getElementById("confirm").focus();
  });
});

function judge(plan) {
  attempt("The judge is asked…", async () => {
    const found = await ask("run", { ticket: plan.ticket });
    tell(el("h2", {}, "Verdicts"), el("div", { class: "answers" }, show("Before", about.old[metric.value]), show("Now", found)), showDiff(plan.diff),
      plan.diff && el("button", { type: "button", class: "act", on: { click: keepEdit } }, "Keep the edit as a diff"));
  });
}

function show(title, one) {
  return el("div", {}, el("h3", {}, title), el("p", { class: "strong" }, `${metric.value}: ${one.value}`), one.reason && el("p", {}, one.reason),
    el("ul", {}, one.claims.map((claim) => el("li", { dir: "auto" }, claim))));
}

function showDiff(diff) {
  return diff ? [el("h2", {}, "The edit"), el("pre", {}, diff)] : el("p", {}, "The spec is not edited.");
}

function keepEdit(event) {
  const place = event.target;
  ask("keep").then((kept) => place.replaceWith(el("p", { role: "status" }, `Kept in ${kept.path}. To apply it: ${kept.apply}`)),
    (error) => place.after(el("p", { class: "bad", role: "alert" }, error.message)));
}

document.body.dataset.ready = "";
