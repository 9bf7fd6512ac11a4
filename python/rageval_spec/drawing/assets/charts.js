// Charts as rows: each row is an SVG as wide as its cell, whose places are percentages, so that texts keep their size.

const ROW = 28;

/** Maps numbers to percentages of a track; the ends get a margin for markers. */
function makeScale(low, high) {
  if (!(high > low)) [low, high] = [low - 0.5, high + 0.5];
  const at = (value) => 2 + (96 * (value - low)) / (high - low);
  return { low, high, at, place: (value) => `${Math.min(99.5, Math.max(0.5, at(value))).toFixed(3)}%` };
}

/** A scale around numbers, with some room at both ends. */
function scaleAround(values, extra = 0.06) {
  const known = values.filter((value) => Number.isFinite(value));
  const low = Math.min(...known);
  const high = Math.max(...known);
  const room = (high - low || Math.abs(high) || 1) * extra;
  return makeScale(low - room, high + room);
}

function gridLines(scale, height, zero = null) {
  const lines = ticks(scale.low, scale.high).map(([value]) =>
    svg("line", { class: "grid", x1: scale.place(value), x2: scale.place(value), y1: 0, y2: height }));
  if (zero !== null) lines.push(svg("line", { class: "zero", x1: scale.place(zero), x2: scale.place(zero), y1: 0, y2: height }));
  return lines;
}

/** The labels of an axis: numbers, or percentages and percentage points of a `metric` that is shown so. */
function axisRow(scale, metric, signed = false) {
  const labels = ticks(scale.low, scale.high).map(([value, text]) => {
    const at = scale.at(value);
    const sign = Number(text) < 0 ? "−" : signed && Number(text) > 0 ? "+" : "";
    const size = Math.abs(Number(text));
    const label = `${sign}${isPercent(metric) ? (signed ? formatSize : formatValue)(metric, size) : text.replace("-", "")}`;
    return svg("text", { x: scale.place(value), y: 13, "text-anchor": at < 6 ? "start" : at > 94 ? "end" : "middle" }, label);
  });
  return svg("svg", { class: "axis", width: "100%", height: 18, "aria-hidden": "true" }, labels);
}

/** An interval with its point; `marker` is "full" or "open". */
function drawEstimate(scale, point, interval, kind, marker = "full") {
  const middle = ROW / 2;
  const drawn = [];
  if (interval) {
    const [x1, x2] = interval.map(scale.place);
    drawn.push(svg("line", { class: `range ${kind}`, x1, x2, y1: middle, y2: middle }));
    for (const x of [x1, x2]) drawn.push(svg("line", { class: `range ${kind}`, x1: x, x2: x, y1: middle - 4, y2: middle + 4 }));
  }
  if (point !== null) drawn.push(svg("circle", { class: `point ${kind} ${marker}`, cx: scale.place(point), cy: middle, r: 4.5 }));
  return drawn;
}

function track(...drawn) {
  return svg("svg", { class: "track", width: "100%", height: ROW, "aria-hidden": "true", focusable: "false" }, drawn);
}

/** The rows of a long chart: the first ones, and a button that shows the rest. */
function foldRows(body, rows, most) {
  body.append(...rows.slice(0, most));
  if (rows.length <= most) return null;
  const button = el("button", { class: "quiet", type: "button", on: { click: () => {
    body.append(...rows.slice(most));
    button.remove();
  } } }, `Show all ${rows.length}`);
  return button;
}

function unitOf(metric) {
  return report.results.units[metric] ?? "";
}

/** What metrics must have in common to share an axis. */
function axisOf(metric) {
  return isPercent(metric) ? "percent" : unitOf(metric);
}

/** Comparisons in groups that can share an axis: metrics of the same unit. */
function groupBy(list, key) {
  const groups = new Map();
  for (const one of list) {
    const found = key(one);
    if (!groups.has(found)) groups.set(found, []);
    groups.get(found).push(one);
  }
  return groups;
}

/** What a comparison says: better or worse where it is significant. */
function describeComparison(comparison) {
  if (comparison.changes) return { kind: "none", sign: "≠", word: "not comparable", isClear: false };
  if (comparison.limit && comparison.limit.p_adjusted >= report.significance) {
    return { kind: "none", sign: "∅", word: "unresolvable", isClear: false };
  }
  const isClear = comparison.p_adjusted < report.significance;
  const better = judgeChange(comparison.metric, comparison.difference);
  if (!isClear || better === 0) return { kind: "none", sign: "~", word: "no clear difference", isClear: false };
  const sign = comparison.difference > 0 ? "▲" : "▼";
  return better > 0 ? { kind: "good", sign, word: "better", isClear } : { kind: "bad", sign, word: "worse", isClear };
}

/** A forest plot: a row for each comparison with the baseline, on one axis for each unit. */
function drawForest(comparisons) {
  const hasDatasets = report.results.datasets.length > 1;
  return [...groupBy(comparisons, (one) => axisOf(one.metric)).values()].map((group) => {
    const unit = unitOf(group[0].metric);
    const ends = group.flatMap((one) => [one.difference, one.interval?.low, one.interval?.high, 0]);
    const scale = scaleAround(ends);
    const body = el("tbody");
    let last = null;
    const rows = group.map((one) => {
      const said = describeComparison(one);
      const isNew = last !== `${one.dataset} ${one.metric}`;
      last = `${one.dataset} ${one.metric}`;
      const ends = one.interval && [one.interval.low, one.interval.high];
      return el("tr", { class: isNew ? "begins" : "" },
        el("th", { scope: "row" }, el("span", { class: isNew ? "strong" : "sr" }, name(one.metric)),
          hasDatasets && el("span", { class: isNew ? "muted" : "sr" }, " on ", name(one.dataset))),
        el("td", { class: "muted" }, name(one.system), spoken(` against ${one.baseline}`)),
        el("td", { class: "wide" }, track(gridLines(scale, ROW, 0), drawEstimate(scale, one.difference, ends, said.kind,
          said.isClear ? "full" : "open"))),
        el("td", { class: `number ${said.kind}` }, el("span", { class: "strong" }, formatChange(one.metric, one.difference)), " ",
          el("span", { class: "sign", "aria-hidden": "true" }, said.sign), spoken(` ${said.word}`)),
        el("td", { class: "number muted small optional" }, formatInterval(one.interval, (end) => formatChange(one.metric, end))),
        el("td", { class: "number muted small optional" }, formatP(one.p_adjusted)));
    });
    const more = foldRows(body, rows, 30);
    const caption = `Difference from the baseline${unit ? ` in ${unit}` : ""}`;
    return el("div", { class: "chart" },
      el("table", { class: "plot forest" }, el("caption", { class: "sr" }, caption),
        el("thead", {}, el("tr", {}, headCells(["metric", "system", caption, "change", "95% interval", "Holm-adjusted p"], [4, 5]))),
        body, el("tfoot", {}, el("tr", {}, el("td", { colspan: 2 }), el("td", { class: "wide" }, axisRow(scale, group[0].metric, true)), el("td", {})))),
      more);
  });
}

function headCells(texts, optional = []) {
  return texts.map((text, at) => el("th", { scope: "col", class: optional.includes(at) ? "optional" : "" }, text));
}

/** The gates with their bounds: a row each, those of the same kind and unit on one axis. */
function drawGates() {
  const gates = report.results.gates.map((gate, at) => ({ ...gate, ...report.gates[at] }));
  const order = { fail: 0, inconclusive: 1, warn: 2, pass: 3 };
  gates.sort((a, b) => order[a.outcome] - order[b.outcome]);
  const groups = groupBy(gates, (one) => `${one.scale}|${axisOf(one.metric)}`);
  return [...groups.values()].map((group) => {
    const [{ scale: kind, metric }] = group;
    const numbers = group.flatMap((one) => [one.point, ...(one.interval ?? []), ...Object.values(one.bounds)]);
    const known = numbers.filter((value) => value !== null);
    const isShare = kind === "value" && !unitOf(metric) && known.every((value) => value >= 0 && value <= 1);
    const scale = !known.length ? null : isShare ? makeScale(0,
      1) : scaleAround(kind === "change" || known.every((v) => v >= 0) ? [...known, 0] : known);
    const body = el("tbody");
    const more = foldRows(body, group.map((gate) => drawGate(gate, scale)), 24);
    const unit = unitOf(metric);
    const caption = (kind === "change" ? "Difference from the baseline" : "Value") + (unit ? ` in ${unit}` : "");
    return el("div", { class: "chart" },
      el("table", { class: "plot gates" },
        el("caption", { class: "sr" }, `Gates: ${caption}`),
        el("thead", {}, el("tr", {}, headCells(["outcome", "gate", caption, "seen"]))),
        body,
        scale && el("tfoot", {}, el("tr", {}, el("td", { colspan: 2 }), el("td", { class: "wide" },
          axisRow(scale, metric, kind === "change")), el("td", {})))),
      more);
  });
}

const KINDS = { __proto__: null, pass: "good", warn: "weak", inconclusive: "weak", fail: "bad" };

function drawGate(gate, scale) {
  const kind = KINDS[gate.outcome];
  const where = [gate.system && [" of ", name(gate.system)], gate.slice && [" where ", name(gate.slice)],
    report.results.datasets.length > 1 && gate.dataset && [" on ", name(gate.dataset)]];
  const seen = gate.scale === "change" ? formatChange(gate.metric, gate.observed) : formatValue(gate.metric, gate.observed);
  return el("tr", {},
    el("td", { class: `outcome ${kind}` }, el("span", { class: "badge", "aria-hidden": "true" }, SIGNS[gate.outcome]),
      spoken(OUTCOMES[gate.outcome])),
    el("th", { scope: "row" }, el("span", { class: "strong" }, name(gate.metric)), el("span", { class: "muted" }, where),
      el("span", { class: "bound" }, " · ", gate.bound),
      gate.outcome !== "pass" && el("span", { class: "why" }, gate.reason)),
    el("td", { class: "wide" }, scale && track(drawAllowed(scale, gate.bounds), gridLines(scale, ROW, gate.scale === "change" ? 0 : null),
      drawEstimate(scale, gate.point, gate.interval, kind), drawBounds(scale, gate.bounds))),
    el("td", { class: `number strong ${kind}` }, seen));
}

function drawAllowed(scale, bounds) {
  if (bounds.min === undefined && bounds.max === undefined) return [];
  const from = bounds.min === undefined ? 0.5 : Math.max(0.5, scale.at(bounds.min));
  const to = bounds.max === undefined ? 99.5 : Math.min(99.5, scale.at(bounds.max));
  return to > from ? [svg("rect", { class: "allowed", x: `${from}%`, width: `${to - from}%`, y: 3, height: ROW - 6, rx: 3 })] : [];
}

function drawBounds(scale, bounds) {
  return Object.entries(bounds).map(([kind, value]) =>
    svg("line", { class: kind === "target" ? "edge target" : "edge", x1: scale.place(value), x2: scale.place(value), y1: 2, y2: ROW - 2 }));
}
