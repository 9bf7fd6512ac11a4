// Claims in their answer, the evidence for each in its document, and what judges said, behind a fold.

/** The answer with the claims of one metric marked; the reader can change the metric. */
function drawMarked(answer, groups, start, place) {
  const text = el("p", { class: "prose", dir: "auto" });
  const told = el("div", { class: "finding", "aria-live": "polite" });
  const node = el("div", { class: "marked" });
  const show = (at) => {
    refill(text, markClaims(answer, groups[at], (claims, isHeld) => showClaims(told, claims, groups[at], place, isHeld)));
    refill(told, describeKey(groups[at]));
  };
  show(start);
  const choice = groups.length > 1 && select("Claims judged by", groups.map((group, at) => [String(at), group.metric]),
    String(start), (at) => show(Number(at)));
  return fill(node, [choice, foldLong(text, answer, "answer"), told]);
}

function markClaims(answer, group, show) {
  const marks = [...group.marks].sort((a, b) => a.from - b.from || b.to - a.to);
  const pieces = [];
  let at = 0;
  for (const claim of marks) {
    const from = Math.max(at, claim.from);
    if (claim.to <= from) continue;
    const same = claim.citation === undefined ? [claim] : marks.filter((one) => one.from === claim.from && one.to === claim.to);
    const { sign, kind, word } = same.map(verdictOf).sort((a, b) => WORST.indexOf(a.kind) - WORST.indexOf(b.kind))[0];
    pieces.push(answer.slice(at, from));
    pieces.push(el("mark", { class: `claim ${kind}`, tabindex: "0", role: "button",
      "aria-label": `${word}: ${answer.slice(from, claim.to)}`, on: {
      mouseenter: () => show(same, false), focus: () => show(same, true), click: () => show(same, true),
      keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); show(same, true); } } } },
      el("span", { class: "sign", "aria-hidden": "true" }, sign), answer.slice(from, claim.to)));
    at = claim.to;
  }
  pieces.push(answer.slice(at));
  return pieces;
}

function describeKey(group) {
  const counts = groupBy(group.marks.map(verdictOf), (one) => one);
  return el("p", { class: "key" }, [...counts].map(([verdict, list]) =>
    el("span", {}, el("span", { class: `sign ${verdict.kind}`, "aria-hidden": "true" }, verdict.sign), ` ${list.length} ${verdict.word}`)),
    el("span", { class: "muted noprint" }, "Point at a claim to see its source."));
}

const WORST = ["bad", "weak", "none", "good"];

/** Shows what the judge said of a claim, or of all citations of one marker, and the evidence in the documents;
 *  `isHeld` also scrolls to it. */
function showClaims(told, claims, group, place, isHeld) {
  for (const item of place.shown.items) clearEvidence(item);
  refill(told, claims.map((claim, at) => describeClaim(claim, group, place, isHeld && at === 0)));
}

function describeClaim(claim, group, { documents, shown, card }, isHeld) {
  const { sign, kind, word } = verdictOf(claim);
  const inContexts = group.against === "contexts";
  const item = inContexts && Number.isInteger(claim.source) ? shown.items[claim.source] : null;
  if (item) showEvidence(item, claim.evidence, isHeld);
  const source = item ? documents[claim.source].id ?? `document ${claim.source + 1}` : inContexts ? null : group.against;
  const quoted = claim.evidence ?? (inContexts ? null : card.question.references?.[claim.source ?? 0]);
  return [
    el("p", {}, el("span", { class: `verdict ${kind}` }, el("span", { class: "sign", "aria-hidden": "true" }, sign), ` ${word}`),
      typeof claim.score === "number" && el("span", { class: "muted" }, ` score ${formatNumber(claim.score)}`),
      source && el("span", { class: "muted" }, claim.citation === undefined ? " nearest source: " : ` cites ${claim.citation}: `, name(source))),
    quoted && el("blockquote", { dir: "auto" }, quoted),
    claim.reason && el("p", { class: "why", dir: "auto" }, claim.reason)];
}

function showEvidence(item, evidence, isHeld) {
  const found = evidence ? findEvidence(evidence, item.content) : [];
  item.node.classList.add("source");
  if (found.length) {
    const pieces = [];
    let at = 0;
    for (const [from, to] of found) {
      pieces.push(item.content.slice(at, from), el("mark", { class: "evidence" }, item.content.slice(from, to)));
      at = to;
    }
    refill(item.text, pieces, item.content.slice(at));
  }
  item.peek(true);
  if (isHeld) (item.text.querySelector("mark") ?? item.node).scrollIntoView({ block: "nearest" });
}

function clearEvidence(item) {
  if (!item.node.classList.contains("source")) return;
  item.node.classList.remove("source");
  item.peek(false);
  if (item.content) refill(item.text, item.content);
}

/** What each judge said about this system's answer: a fold for each metric. */
function drawTold(card, system) {
  const folds = report.questions.cells.map((cell, at) => {
    const details = cell.system === system ? readDetails(card.told[at]) : null;
    return details && !details.calls && drawFold(report.results.metrics[cell.metric], details);
  }).filter(Boolean);
  return folds.length > 0 && el("div", { class: "told" }, el("h4", {}, "What the judges said"), folds);
}

function drawFold(metric, details) {
  const groups = listJudged(details, metric);
  const claims = groups.reduce((sum, group) => sum + group.claims.length, 0);
  const by = details.decided_by ?? groups.find((group) => group.by)?.by;
  const fold = el("details", {}, el("summary", {}, name(metric), el("span", { class: "muted small" },
    [claims > 0 && formatCount(claims, groups.every((group) => group.part === "contexts") ? "document" : "claim"),
      by && `decided by ${by}`].filter(Boolean).map((one) => ` · ${one}`))));
  let isFilled = false;
  fold.addEventListener("toggle", () => {
    if (!isFilled) fill(fold, [groups.map(drawGroup), drawRest(details, groups.length > 0)]);
    isFilled = true;
  });
  return fold;
}

const PARTS = { __proto__: null, answer: "Claims of the answer", reference: "Claims of the reference", contexts: "Documents", claims: "Statements" };

function drawGroup(group) {
  return [el("h5", {}, PARTS[group.part] ?? group.part), el("ul", { class: "claims" }, group.claims.map((claim) => {
    const { sign, kind, word } = verdictOf(claim);
    return el("li", {}, el("span", { class: `verdict ${kind}` }, el("span", { class: "sign", "aria-hidden": "true" }, sign), ` ${word}`),
      typeof claim.score === "number" && el("span", { class: "muted small" }, ` ${formatNumber(claim.score)}`),
      el("p", { class: "prose", dir: "auto" }, claim.text), claim.evidence && el("blockquote", { dir: "auto" }, claim.evidence),
        claim.reason && el("p", { class: "why", dir: "auto" }, claim.reason));
  }))];
}

/** The rest of the details: the raw reply as the model wrote it, and other keys as JSON. */
function drawRest(details, hasClaims) {
  const { raw, ...rest } = details;
  const other = Object.fromEntries(Object.entries(rest).filter(([key, value]) => !(hasClaims && (["claims", "contexts", "part",
    "against"].includes(key) || value?.claims))));
  return [raw !== undefined && [el("h5", {}, "The judge's reply"), el("pre", { dir: "auto", tabindex: "0" },
    typeof raw === "string" ? raw : JSON.stringify(raw, null, 2))],
    Object.keys(other).length > 0 && el("pre", { dir: "auto", tabindex: "0" }, JSON.stringify(other, null, 2))];
}
