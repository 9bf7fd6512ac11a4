// How values are spread: a strip of bars for each metric and system, read from the values themselves.

const BINS = 24;
const STRIP = 34;

function drawSpread() {
  const groups = groupBy(report.questions.cells, (cell) => cell.metric);
  return [...groups].map(([metric, cells]) => {
    const spread = cells.find((cell) => cell.spread)?.spread;
    const known = cells.map((cell) => cell.values.filter((value) => value !== null)).flat();
    if (known.length < 2) return null;
    const [low, high] = spread ? [spread.low, spread.high] : findRange(known);
    if (low === high) return null;
    const title = report.results.metrics[metric];
    return el("section", { class: "spread", "aria-label": title },
      el("h3", {}, name(title), unitOf(title) && el("span", { class: "muted small" }, ` ${unitOf(title)}`)),
      el("table", { class: "plot" }, el("caption", { class: "sr" }, `How the values of ${title} are spread`),
        el("tbody", {}, cells.slice(0, 12).map((cell) => drawStrip(cell, low, high))),
        el("tfoot", {}, el("tr", {}, el("td", {}), el("td", { class: "wide" }, axisRow(makeScale(low, high), title)), el("td", {})))));
  }).filter(Boolean);
}

/** What a metric like latency@p95 is on each dataset: `{word: "p95", numbers}`; null for other metrics. */
function findPercentiles(cell) {
  const [system, metric] = [report.results.systems[cell.system], report.results.metrics[cell.metric]];
  const found = report.results.aggregates.filter((one) => one.system === system && one.metric === metric && one.slice === null);
  const word = found[0]?.statistic ?? "";
  return /^p\d/.test(word) ? { word, numbers: found.map((one) => one.mean).filter((mean) => mean !== null) } : null;
}

function findRange(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low >= 0 && high <= 1 && high > 0.5 ? [0, 1] : [low >= 0 && low < high / 2 ? 0 : low, high];
}

/** How many of a cell's values are in each bin; of all questions, also if the page shows only some. */
function countValues(cell, low, high) {
  if (cell.spread) return { ...cell.spread, scored: cell.spread.counts.reduce((sum, count) => sum + count, 0) };
  const counts = new Array(BINS).fill(0);
  let [scored, sum] = [0, 0];
  for (const value of cell.values) {
    if (value === null) continue;
    counts[Math.min(BINS - 1, Math.floor((BINS * (value - low)) / (high - low)))] += 1;
    scored += 1;
    sum += value;
  }
  return { counts, scored, mean: sum / scored };
}

function drawStrip(cell, low, high) {
  const [system, metric] = [report.results.systems[cell.system], report.results.metrics[cell.metric]];
  const scale = makeScale(low, high);
  const { counts, scored, mean } = countValues(cell, low, high);
  const most = Math.max(...counts);
  const width = (scale.at(high) - scale.at(low)) / BINS;
  const bars = counts.map((count, at) => {
    const height = count && Math.max(2, ((STRIP - 4) * count) / most);
    const [from, to] = [at, at + 1].map((edge) => formatValue(metric, low + ((high - low) * edge) / BINS, 2));
    return count && svg("rect", { class: "bar", x: `${scale.at(low) + at * width + 0.15}%`, width: `${width - 0.3}%`,
      y: STRIP - height, height },
      svg("title", {}, `${from} to ${to}: ${formatCount(count, "question")}`));
  });
  const percentiles = findPercentiles(cell);
  const told = percentiles ?? { word: "mean", numbers: scored ? [mean] : [] };
  const lines = told.numbers.map((at) => svg("line", { class: "mean", x1: scale.place(at), x2: scale.place(at), y1: 0, y2: STRIP }));
  const numbers = told.numbers.map((one) => formatValue(metric, one)).join(", ") || NONE;
  return el("tr", {},
    el("th", { scope: "row", class: "muted" }, name(system)),
    el("td", { class: "wide" }, svg("svg", { class: "track", width: "100%", height: STRIP, role: "img",
      "aria-label": `${system}: ${formatCount(scored, "value")}, ${told.word} ${numbers}` },
      svg("line", { class: "floor", x1: "2%", x2: "98%", y1: STRIP - 0.5, y2: STRIP - 0.5 }), bars, lines)),
    el("td", { class: "number" }, percentiles && el("span", { class: "muted small" }, `${told.word} `), numbers));
}
