// The overview: the outcome as a sentence, the gates, what changed, the table, and where to look first.

function drawOverview() {
  const { results } = report;
  return el("div", { class: "page" },
    drawHero(), drawPart(),
    results.gates.length > 0 && section("gates", ["Gates"], "The shaded part of each row is where the number must lie.", drawGates()),
    drawChanges(),
    section("results", ["Results"], null, results.datasets.map(drawResults), drawMarks()),
    report.weighted && drawNumbers("weighted", report.weighted.title, report.weighted, 1),
    drawCorrected(),
    report.ranks && drawNumbers("ranks", report.ranks.title, report.ranks, 2),
    report.stability && drawNumbers("stability", report.stability.title, report.stability, 1),
    drawFirst(),
    section("spread", ["How values are spread"], `Each bar counts questions; the line is the mean of these values${
      report.questions.cells.some(findPercentiles) ? ", or the percentile of a metric that is one" : ""}.`, el("div", { class: "spreads" },
      drawSpread())),
    drawWeakest(), drawSlices(), drawDiagnosis(), drawNotes(), drawMeanings());
}

/** What changed: against each earlier evaluation that a gate names, then against the first system. */
function drawChanges() {
  const { results } = report;
  const isEarlier = (one) => !results.systems.includes(one.baseline);
  const earlier = groupBy(orderComparisons(results.baselines.filter(isEarlier)), (one) => one.baseline);
  const own = orderComparisons(results.comparisons);
  return [...earlier.values(), own].filter((changes) => changes.length > 0).map((changes, at) => {
    const baselines = new Set(changes.map((one) => one.baseline));
    const title = baselines.size === 1 ? ["Change against ", name(changes[0].baseline)] : ["Change against the baseline"];
    const hint = `The line is the 95% interval. A full dot is a significant difference (Holm-adjusted p < ${report.significance}).`;
    const unlike = [...new Set(changes.flatMap((one) => one.changes ?? []).map((one) => one.told))];
    return section(`changes-${at}`, title, unlike.length > 0 ? `${hint} ≠ is not comparable: ${unlike.join("; ")}.` : hint,
      drawForest(changes));
  });
}

function orderComparisons(comparisons) {
  const { datasets, metrics } = report.results;
  return comparisons.filter((one) => one.slice === null).sort((a, b) =>
    datasets.indexOf(a.dataset) - datasets.indexOf(b.dataset) || metrics.indexOf(a.metric) - metrics.indexOf(b.metric));
}

function section(id, title, hint, ...children) {
  return el("section", { class: "block", "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title), hint && el("p", { class: "hint" }, hint), children);
}

function drawHero() {
  const { headline, results } = report;
  const facts = [formatCount(report.part?.total ?? report.count, "question"), formatCount(results.systems.length, "system"),
    formatCount(results.metrics.length, "metric")];
  return el("div", { class: `hero ${headline.verdict}` },
    el("div", { class: "seal", "aria-hidden": "true" }, SIGNS[headline.verdict]),
    el("div", {},
      el("h1", {}, `${headline.title}: ${headline.summary}.`),
      [headline.reason, ...headline.taken_over].map((one) => one && el("p", { class: "lead", dir: "auto" }, one)),
      el("p", { class: "muted" }, facts.join(" · "), " · ", results.datasets.flatMap((one, at) => [at > 0 && ", ", name(one)])),
      results.failures.length > 1 && el("ul", { class: "failures" }, results.failures.map((one) => el("li", { dir: "auto" }, one)))));
}

function drawResults(dataset) {
  const { results } = report;
  const systems = results.systems.filter((system) => results.aggregates.some((one) => one.dataset === dataset && one.system === system));
  const head = [el("th", { scope: "col" }, "metric"), systems.map((system) => el("th", { scope: "col", class: "number" }, name(system)))];
  const rows = results.metrics.map((metric) => el("tr", {},
    el("th", { scope: "row" }, name(metric, { title: results.summaries[metric] ?? null }), unitOf(metric) && el("span",
      { class: "muted small" }, ` ${unitOf(metric)}`)),
    systems.map((system) => drawCell(dataset, system, metric))));
  return [results.datasets.length > 1 && el("h3", {}, name(dataset)), table(head, rows, { class: "results",
    "aria-label": `results on ${dataset}` })];
}

function drawCell(dataset, system, metric) {
  const cell = aggregateOf(dataset, system, metric);
  if (!cell) return el("td", { class: "number" }, el("span", { class: "sr" }, "not computed"));
  const comparison = comparisonOf(dataset, system, metric);
  const said = comparison && describeComparison(comparison);
  const gates = report.results.gates.filter((one) => one.dataset === dataset && one.system === system && one.metric === metric &&
    !one.slice);
  const worst = ["fail", "inconclusive", "warn", "pass"].find((outcome) => gates.some((one) => one.outcome === outcome));
  const text = [formatMean(cell), said?.isClear && el("span", { class: `sign ${said.kind}`,
    title: `significantly ${said.word} than ${comparison.baseline}` }, ` ${said.sign}`, spoken(said.word)),
    worst && el("span", { class: `sign ${KINDS[worst]}`, title: `gate ${OUTCOMES[worst]}` }, ` ${SIGNS[worst]}`,
      spoken(`gate ${OUTCOMES[worst]}`))];
  return el("td", { class: "number" },
    el("a", { class: "value", href: writeHash({ view: "questions", system: report.results.systems.indexOf(system),
      metric: report.results.metrics.indexOf(metric) }) }, text),
    drawBand(metric, cell.mean),
    cell.interval && el("span", { class: "interval" }, formatInterval(cell.interval, (end) => formatValue(metric, end))),
    cell.scored < cell.total && el("span", { class: "interval" }, `${cell.scored} of ${cell.total} scored`));
}

function drawMarks() {
  return report.legend.length > 0 && el("dl", { class: "marks" }, report.legend.map(([mark, meaning]) =>
    el("div", {}, el("dt", {}, mark), el("dd", { dir: "auto" }, meaning))));
}

/** The judge's numbers, what people's labels make of them, and the labels alone. */
function drawCorrected() {
  return report.corrected && drawNumbers("corrected", "What people would say", report.corrected, 2);
}

/** A table of numbers with the sentences that explain it; the numbers of the column `strong` stand out. */
function drawNumbers(id, title, { header, rows, remarks: [explanation, ...reasons] }, strong) {
  const head = header.map((text, at) => el("th", { scope: "col", class: at ? "number" : "" }, text));
  const cells = (row) => row.map((text, at) => (at === 0 ? el("th", { scope: "row", dir: "auto" }, text)
    : el("td", { class: at === strong ? "number strong" : "number muted" }, text)));
  return section(id, [title], explanation,
    table(head, rows.map((row) => el("tr", {}, cells(row))), { "aria-label": title.toLowerCase() }),
    reasons.map((reason) => el("p", { class: "hint", dir: "auto" }, reason)));
}

/** The questions that every report lists first: those that failed, then those with the worst values. */
function drawFirst() {
  const { first, id, text, failedOf } = report.questions;
  const { systems, metrics, datasets } = report.results;
  return first.length > 0 && section("first", ["Look at first"], null,
    el("ol", { class: "first" }, first.map(([at, system, metric]) => el("li", {},
      el("a", { href: writeHash({ view: "questions", q: at, system, metric: metric < 0 ? defaultState().metric : metric }) },
        el("span", { class: "number strong" }, metric < 0 || failedOf.get(system)?.has(at) ? el("span", { class: "bad" }, "✗ failed") :
          formatValue(metrics[metric], cellOf(system, metric).values[at])),
        el("span", { class: "question", dir: "auto" }, text[at] ?? id[at]),
        el("span", { class: "muted small" }, name(id[at]), " · ", metric >= 0 && [name(metrics[metric]), " of "], name(systems[system]),
          datasets.length > 1 && [" on ", name(datasets[report.questions.dataset[at]])]))))),
    el("p", {}, el("a", { href: writeHash({ view: "questions" }) }, report.count === 1 ? "See the question" : report.part ? `See the ${formatCount(report.count,
      "question")} of this page` : `See all ${formatCount(report.count, "question")}`)));
}

/** What the page leaves out, if it shows only a part of the questions. */
function drawPart() {
  return report.part && el("p", { class: "hint part" }, report.part.told, " Any other question: ", el("code", {},
    report.part.command), ".");
}

function drawWeakest() {
  const { weakest, slices, aggregates } = report.results;
  const corrected = slices.length ? [...new Set(aggregates.filter((cell) => cell.correction).map((cell) => cell.metric))] : [];
  const untested = corrected.length ? ` Not tested, because people's labels correct it: ${corrected.join(", ")}.` : "";
  if (!weakest.length) {
    return untested ? section("weakest", ["Weakest slices"], `No slice is significantly worse than the other questions.${untested}`) : null;
  }
  const rows = weakest.map((gap) => el("tr", {},
    el("th", { scope: "row" }, el("a", { href: writeHash({ view: "questions", system: report.results.systems.indexOf(gap.system),
      metric: report.results.metrics.indexOf(gap.metric), slice: report.questions.sliceNames.indexOf(gap.slice) }) }, name(gap.slice))),
    el("td", {}, name(gap.metric)), el("td", { class: "muted" }, name(gap.system)),
    el("td", { class: "number strong" }, formatValue(gap.metric, gap.mean)), el("td", { class: "number muted" }, formatValue(gap.metric, gap.rest)),
    el("td", { class: "number bad" }, formatChange(gap.metric, gap.difference), el("span", { class: "interval" },
      formatInterval(gap.interval, (end) => formatChange(gap.metric, end)))),
    el("td", { class: "number muted" }, String(gap.queries))));
  return section("weakest", ["Weakest slices"], `Slices that are significantly worse than the other questions (Holm-adjusted).${untested}`,
    table([["slice", ""], ["metric", ""], ["system", ""], ["mean", "number"], ["others", "number"], ["difference", "number"],
      ["questions", "number"]]
      .map(([text, kind]) => el("th", { scope: "col", class: kind }, text)), rows, { "aria-label": "weakest slices" }));
}

const SLICES_SHOWN = 12;

/** The slices on a metric, a column for each system; if there are many, the smaller ones are behind a fold. */
function drawSlices() {
  const { slices, systems, metrics } = report.results;
  if (!slices.length) return null;
  const body = el("div");
  const ordered = [...slices].sort((a, b) => b.queries - a.queries).slice(0, SLICES_SHOWN);
  const largest = slices.filter((one) => ordered.includes(one));
  const others = slices.filter((one) => !ordered.includes(one));
  const draw = (metric) => {
    const shown = systems.filter((system) => slices.some((one) => one.aggregates.some((cell) => cell.system === system &&
      cell.metric === metric)));
    const makeRow = (one) => el("tr", {},
      el("th", { scope: "row" }, name(one.name, { title: one.description }), report.results.datasets.length > 1 && el("span",
        { class: "muted" }, " on ", name(one.dataset))),
      el("td", { class: "number muted" }, String(one.queries)),
      shown.map((system) => {
        const cell = one.aggregates.find((cell) => cell.system === system && cell.metric === metric);
        return el("td", { class: "number" }, cell ? formatMean(cell) : "", cell?.interval && el("span", { class: "interval" },
          formatInterval(cell.interval, (end) => formatValue(metric, end))));
      }));
    const tabulate = (some, label) => table([el("th", { scope: "col" }, "slice"), el("th", { scope: "col", class: "number" }, "questions"),
      shown.map((system) => el("th", { scope: "col", class: "number" }, name(system)))], some.map(makeRow), { "aria-label": label });
    const isOpen = body.querySelector("details")?.open;
    refill(body, [tabulate(largest, `slices by ${metric}`), others.length > 0 && el("details", { class: "others", open: isOpen },
      el("summary", {}, others.length === 1 ? "1 other slice" : `${others.length} other slices`),
      tabulate(others, `other slices by ${metric}`))]);
  };
  const start = metrics[defaultState().metric] ?? metrics[0];
  draw(start);
  return section("slices", ["Slices"], null, select("Metric", metrics.map((one) => [one, one]), start, draw), body);
}

const CAUSES = { __proto__: null,
  retrieval: "What was needed is not among the documents, and the answer is wrong.",
  generation: "What was needed is there, and the answer is wrong or unfaithful.",
  both: "What was needed is not there, and the answer does not follow the documents.",
  lucky: "The answer is right, although what was needed is not among the documents.",
  fine: "What was needed is there, and the answer is right.",
  undecided: "A part was not measured, or lies between the thresholds.",
};

function hasCauses(system) {
  return report.questions.causeOf.has(report.results.systems.indexOf(system));
}

function drawDiagnosis() {
  const { diagnosis } = report.results;
  if (!diagnosis?.counts.length) return null;
  const groups = groupBy(diagnosis.counts.filter((one) => one.slice === null), (one) => `${one.dataset}\n${one.system}`);
  return section("causes", ["Why answers go wrong"], null, [...groups.values()].map((counts) => {
    const [{ dataset, system }] = counts;
    const scale = makeScale(0, 1);
    const advice = diagnosis.advice.find((one) => one.dataset === dataset && one.system === system);
    const rows = counts.map((one) => el("tr", {},
      el("th", { scope: "row" }, hasCauses(system) ? el("a",
        { href: writeHash({ view: "questions", system: report.results.systems.indexOf(system), cause: one.cause }) },
        one.cause) : one.cause,
        el("span", { class: "why" }, CAUSES[one.cause])),
      el("td", { class: "wide" }, track(gridLines(scale, ROW), svg("rect", { class: "share", x: "2%", width: `${96 * one.share}%`,
        y: 8, height: ROW - 16, rx: 2 }),
        one.interval && drawEstimate(scale, null, [one.interval.low, one.interval.high], "none"))),
      el("td", { class: "number" }, el("span", { class: "strong" }, formatPercent(one.share)), el("span", { class: "interval" },
        `${one.count} of ${one.total}`))));
    return el("div", { class: "chart" }, el("h3", {}, name(system), report.results.datasets.length > 1 && [" on ", name(dataset)]),
      advice && el("p", { class: "advice", dir: "auto" }, el("strong", {}, "Try first: "), advice.sentence),
      el("table", { class: "plot causes" }, el("caption", { class: "sr" }, `Causes of ${system}`), el("tbody", {}, rows)),
      drawSliceCauses(dataset, system));
  }));
}

/** The causes in each slice, behind a fold that says where one stands out. */
function drawSliceCauses(dataset, system) {
  const ofThis = (one) => one.slice !== null && one.dataset === dataset && one.system === system;
  const slices = groupBy(report.results.diagnosis.counts.filter(ofThis), (one) => one.slice);
  if (!slices.size) return null;
  const frequent = report.frequent_causes.filter(ofThis);
  const causes = Object.keys(CAUSES).filter((cause) => [...slices.values()].flat().some((one) => one.cause === cause));
  const place = { view: "questions", system: report.results.systems.indexOf(system),
    dataset: report.results.datasets.length > 1 ? report.results.datasets.indexOf(dataset) : -1 };
  const order = new Map(report.results.slices.filter((one) => one.dataset === dataset).map((one, at) => [one.name, at]));
  const rows = [...slices].sort(([a], [b]) => order.get(a) - order.get(b)).map(([slice, counts]) => el("tr", {}, el("th", { scope: "row" }, name(slice)),
    el("td", { class: "number muted" }, String(counts[0].total)), causes.map((cause) => {
      const one = counts.find((count) => count.cause === cause);
      if (!one) return el("td", { class: "number muted" }, "0");
      const isFrequent = frequent.some((other) => other.slice === slice && other.cause === cause);
      const link = writeHash({ ...place, cause, slice: report.questions.sliceNames.indexOf(slice) });
      return el("td", { class: "number" }, el("a", { href: link }, String(one.count)),
        isFrequent && el("span", { class: "bad" }, " ▲", spoken(" more frequent than among the other questions")),
        el("span", { class: "interval" }, `${formatPercent(one.share)} ${formatInterval(one.interval, formatPercent)}`));
    })));
  const told = frequent.length ? `▲ ${frequent.map((one) => `${one.cause} in ${one.slice}`).join(", ")}` : "no cause stands out";
  const head = ["slice", "questions", ...causes].map((text, at) => el("th", { scope: "col", class: at ? "number" : "" }, text));
  return el("details", { class: "slice-causes" }, el("summary", {}, "By slice", el("span", { class: "muted small", dir: "auto" }, ` · ${told}`)),
    table(head, rows, { "aria-label": `causes by slice of ${system}` }),
    frequent.length > 0 && el("p", { class: "muted small" },
      "▲ significantly more frequent than among the other questions (Fisher's exact test, Holm-adjusted p < 0.05)"));
}

function drawNotes() {
  return report.notes.length > 0 && section("notes", ["Notes"], null, el("ul", { class: "notes" }, report.notes.map((note) =>
    el("li", { class: note.level, dir: "auto" }, note.level === "warning" && el("strong", {}, "! Warning: "), note.text))));
}

/** What each metric measures, in words. */
function drawMeanings() {
  const { summaries, metrics, lower_is_better: lower } = report.results;
  const told = metrics.filter((metric) => summaries[metric] || report.results.bands?.[metric]);
  return told.length > 0 && section("meanings", ["What the numbers mean"], null, el("dl", { class: "meanings" }, told.map((metric) =>
    el("div", {}, el("dt", {}, name(metric)), el("dd", {}, summaries[metric], lower.includes(metric) && " Lower is better.",
      drawLevels(metric))))));
}

/** The level of a metric's scale that a value meets: `{word, bound, action}`; null without a scale or a value. */
function bandOf(metric, value) {
  const scale = report.results.bands?.[metric];
  if (!scale || value === null || value === undefined) return null;
  return scale.levels.find((level) => level.bound === null || (scale.lower_is_better ? value <= level.bound : value >= level.bound)) ?? null;
}

function drawBand(metric, value) {
  const level = bandOf(metric, value);
  return level && el("span", { class: "band", title: level.action || null }, level.word);
}

function drawLevels(metric) {
  const scale = report.results.bands?.[metric];
  return scale && el("ul", { class: "levels" }, scale.levels.map((level) => el("li", {}, el("strong", {}, level.word),
    level.bound === null ? " otherwise" : ` ${scale.lower_is_better ? "up to" : "from"} ${isPercent(metric) ? formatValue(metric, level.bound, 12) : level.bound}`, level.action &&
      `: ${level.action}`)));
}
