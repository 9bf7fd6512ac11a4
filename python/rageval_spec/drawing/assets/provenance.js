// How the numbers were made: spec, digests, versions, models, prompts, settings and seeds.

function drawProvenance() {
  const { results } = report;
  const { statistics = {}, ...settings } = results.settings;
  return el("div", { class: "page" },
    el("div", { class: "hero plain" }, el("div", {}, el("h1", {}, "How these numbers were made"),
      el("p", { class: "muted" }, "The same spec, data and models give the same numbers, to the last digit."))),
    section("digest", ["Spec"], null, drawPairs({ name: results.name, sha256: results.spec_digest }),
      Object.keys(results.spec).length > 0 && el("details", {}, el("summary", {}, "The spec, defaults filled in, secrets by name"),
        el("pre", { tabindex: "0" }, writeTree(results.spec)))),
    section("versions", ["Versions"], null, drawPairs(results.versions)),
    Object.keys(results.models).length > 0 && section("models", ["Models"], null,
      Object.entries(results.models).map(([key, facts]) => [el("h3", {}, name(key)), drawPairs(facts)])),
    Object.keys(results.prompts).length > 0 && section("prompts", ["Prompts"], "The sha256 of each prompt, by judge.",
      drawPairs(results.prompts)),
    Object.keys(results.origins ?? {}).length > 0 && section("origins", ["Datasets"], "The version and origin of each dataset.",
      Object.entries(results.origins).map(([key, facts]) => [el("h3", {}, name(key)), drawPairs(Object.fromEntries(Object.entries(flatten(facts)).filter(([, fact]) => fact !== null)))])),
    Object.keys(results.digests).length > 0 && section("data", ["Data"], "The sha256 of each part of each dataset.",
      Object.entries(results.digests).map(([key, facts]) => [el("h3", {}, name(key)), drawPairs(facts)])),
    drawJudging(results.judging, results.replies ?? {}),
    section("statistics", ["Statistics and seeds"], null, drawPairs(statistics)),
    section("settings", ["Settings"], null, drawPairs(flatten(settings))));
}

function drawJudging(judging, replies) {
  const shares = Object.keys(replies).length > 0 ? ["readable at first", "after asking again", "never", "more calls"] : [];
  const rows = Object.entries(judging).map(([key, cost]) => el("tr", {}, el("th", { scope: "row" }, name(key)),
    [cost.calls, cost.input_tokens, cost.output_tokens].map((value) => el("td", { class: "number" },
      value === null ? NONE : value.toLocaleString("en"))),
    el("td", { class: "number" }, cost.cost === null ? NONE : `$${formatNumber(cost.cost, 4)}`),
    shares.map((_, at) => el("td", { class: "number" }, shareReplies(replies[key], at)))));
  return rows.length > 0 && section("judging", ["What judging cost"],
    "What the replies behind these values took, whenever they were paid for.",
    table(["model", "calls", "input tokens", "output tokens", "cost", ...shares].map((text, at) => el("th",
      { scope: "col", class: at ? "number" : "" }, text)), rows, { "aria-label": "What judging cost" }));
}

/** The share of a model's questions whose replies could be read at first (0), after asking again (1), or never (2), and
 * how many calls it took to ask again (3). */
function shareReplies(counts, at) {
  if (counts === undefined) return NONE;
  if (at === 3) return counts.repeats.toLocaleString("en");
  const each = [counts.first, counts.later, counts.never];
  return formatPercent(each[at] / (each[0] + each[1] + each[2]));
}

function drawPairs(pairs) {
  return el("dl", { class: "pairs" }, Object.entries(pairs).map(([key, value]) =>
    el("div", {}, el("dt", {}, name(key)), el("dd", { dir: "auto" },
      value === null ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value)))));
}

function flatten(tree, prefix = "") {
  const flat = {};
  for (const [key, value] of Object.entries(tree)) {
    if (value && typeof value === "object" && !Array.isArray(value)) Object.assign(flat, flatten(value, `${prefix}${key}.`));
    else flat[prefix + key] = value;
  }
  return flat;
}

/** A tree in the manner of YAML; strings are quoted as in JSON where they could be taken for something else. */
function writeTree(tree, indent = "") {
  if (Array.isArray(tree)) return tree.map((one) => `${indent}- ${writeNested(one, `${indent}  `, true)}`).join("\n");
  return Object.entries(tree).map(([key, value]) => `${indent}${key}: ${writeNested(value, `${indent}  `, false)}`).join("\n");
}

function writeNested(value, indent, isItem) {
  if (value === null || typeof value !== "object") return typeof value === "string" && /^[\w./-][\w ./@-]*$/.test(value) ? value : JSON.stringify(value);
  if (!Object.keys(value).length) return Array.isArray(value) ? "[]" : "{}";
  const text = writeTree(value, indent);
  return isItem ? text.trimStart() : `\n${text}`;
}
