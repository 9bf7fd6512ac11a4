// Reads what judges told about a value: claims with their verdicts, places and evidence.

const SUPPORTED_FROM = 0.5;

/** The verdict of a claim; from its score, if the judge gives only scores. */
function verdictOf(claim) {
  if (claim.isCited) return Number.isInteger(claim.source) ? { sign: "→", kind: "none", word: "cited" } :
    { sign: "✗", kind: "bad", word: "names no document of the answer" };
  if (VERDICTS[claim.verdict]) return VERDICTS[claim.verdict];
  if (typeof claim.score !== "number") return { sign: "·", kind: "none", word: "not judged" };
  return claim.score >= SUPPORTED_FROM ? VERDICTS.supported : VERDICTS.not_enough_info;
}

function readDetails(told) {
  if (!told?.details) return null;
  try {
    const details = JSON.parse(told.details);
    return details && typeof details === "object" && !Array.isArray(details) ? details : null;
  } catch {
    return null;
  }
}

const JUDGED = { __proto__: null,
  context_recall: ["reference", "contexts"],
  completeness: ["reference", "answer"],
  conciseness: ["claims", "question"],
  noise_sensitivity: ["answer", "reference"],
};

/** The groups of claims in a value's details: `{part, against, claims, by}`. */
function listJudged(details, metric) {
  if (!details) return [];
  const usual = JUDGED[metric] ?? ["answer", "contexts"];
  const groups = [];
  const add = (claims, part, against, by) => {
    const isList = Array.isArray(claims) && claims.length && claims.every((one) => one && typeof one.text === "string");
    if (isList) groups.push({ part, against, claims, by });
  };
  add(details.claims, details.part ?? usual[0], details.against ?? usual[1], details.decided_by);
  add(details.contexts, "contexts", details.against ?? "question", details.decided_by);
  for (const [part, against] of [["answer", "reference"], ["reference", "answer"]]) {
    const found = details[part];
    if (found && typeof found === "object") add(found.claims, part, against, found.decided_by);
  }
  return groups;
}

/** The claims of the answer that have a place in it, for each metric: `[{metric, against, marks}]`.
 *  What was judged about a citation is at its marker. Citations that no metric judged are a group of their own. */
function listMarks(card, system, answer, cited) {
  const places = countPoints(answer);
  const found = [];
  report.questions.cells.forEach((cell, at) => {
    if (cell.system !== system) return;
    const metric = report.results.metrics[cell.metric];
    for (const group of listJudged(readDetails(card.told[at]), metric)) {
      if (group.part !== "answer") continue;
      const marks = group.claims
        .filter((claim) => Number.isInteger(claim.start) && claim.end > claim.start && claim.end <= places.length - 1)
        .map((claim) => ({ ...claim, from: places[claim.start], to: places[claim.end] }))
        .filter((claim) => looksLike(claim.text, answer.slice(claim.from, claim.to)))
        .map((claim) => (claim.marker ? { ...claim, from: places[claim.marker[0]], to: places[claim.marker[1]] } : claim));
      if (marks.length) found.push({ metric, against: group.against, marks });
    }
  });
  const citations = JSON.parse(cited ?? "[]");
  if (!citations.length || found.some((group) => group.marks.some((claim) => claim.citation !== undefined))) return found;
  const marks = citations.map(({ start, end, marker, document, context }) => ({ isCited: true, source: context,
    citation: document, text: answer.slice(places[start], places[end]), from: places[marker?.[0] ?? start], to: places[marker?.[1] ?? end] }));
  return [...found, { metric: "citations", against: "contexts", marks }];
}

/** Whether a claim can come from a passage: details of metrics that judge another text have other places. */
function looksLike(claim, passage) {
  const words = new Set(passage.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
  const own = claim.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return !own.length || passage.includes(claim) || own.some((word) => words.has(word));
}

/** Where a passage occurs in a text, whatever the case and white space; "..." stands for an omission. */
function findEvidence(evidence, text) {
  const found = [];
  let from = 0;
  for (const piece of evidence.split(/\.\.\.|…|\[\.\.\.\]|\[…\]/)) {
    const words = piece.trim().replace(/^["'“”‘’«»]+|["'“”‘’«»]+$/g, "").split(/\s+/).filter(Boolean);
    if (!words.length) continue;
    const rule = new RegExp(words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("\\s+"), "giu");
    rule.lastIndex = from;
    const match = rule.exec(text);
    if (!match) return [];
    found.push([match.index, match.index + match[0].length]);
    from = match.index + match[0].length;
  }
  return found;
}
