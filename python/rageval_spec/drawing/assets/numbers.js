// Formats numbers as the other reports do.

const SIGNS = { __proto__: null, pass: "✓", warn: "!", inconclusive: "?", fail: "✗", error: "✗" };
const OUTCOMES = { __proto__: null, pass: "passed", warn: "warned", inconclusive: "inconclusive", fail: "failed", error: "failed" };
const NONE = "–";

function formatNumber(value, digits = report.digits) {
  if (value === null || value === undefined) return NONE;
  if (value === 0) return (0).toFixed(digits);
  const size = Math.abs(value);
  if (size < 0.5 * 10 ** -digits || size >= 1e9) return value.toExponential(Math.max(digits - 1, 0));
  return value.toFixed(size < 0.01 ? Math.max(digits, 1 - Math.floor(Math.log10(size))) : digits);
}

function isPercent(metric) {
  return report.results.show_as?.[metric] === "percent";
}

/** A value of a metric: a number, or `72.5%`. */
function formatValue(metric, value, digits = report.digits) {
  if (value === null || value === undefined || !isPercent(metric)) return formatNumber(value, digits);
  return formatPercent(value, Math.max(digits - 2, 0));
}

/** The size of a difference between two values of a metric: a number, or `2.5 pp`. */
function formatSize(metric, size, digits = report.digits) {
  return isPercent(metric) ? formatValue(metric, size, digits).replace("%", " pp") : formatNumber(size, digits);
}

/** A signed difference, with a minus sign as wide as the plus. */
function formatChange(metric, value, digits = report.digits) {
  if (value === null || value === undefined) return NONE;
  return (value > 0 ? "+" : value < 0 ? "−" : "±") + formatSize(metric, Math.abs(value), digits);
}

function formatMean(aggregate, digits = report.digits) {
  if (aggregate.mean === null) return NONE;
  const isCount = aggregate.statistic === "sum" && Number.isInteger(aggregate.mean);
  const mixed = aggregate.versions ? ` (${aggregate.versions.length} versions)` : "";
  return (isCount ? String(aggregate.mean) : formatValue(aggregate.metric, aggregate.mean, digits)) + mixed;
}

/** `[0.612, 0.725]`; `format` writes its ends, and ` pp` stands only behind the last one. */
function formatInterval(interval, format) {
  return interval ? `[${format(interval.low).replace(" pp", "")}, ${format(interval.high)}]` : "";
}

/** A share as a percentage: `12.5%`. Halves are rounded up, and only 0 is 0% and only 1 is 100%. */
function formatPercent(share, digits = 1) {
  const rounded = Math.round(Number((share * 10 ** (digits + 2)).toPrecision(12))) / 10 ** digits;
  const isFar = rounded !== 0 && rounded !== 100;
  return isFar || share === rounded / 100 || digits > 9 ? `${rounded}%` : formatPercent(share, digits + 1);
}

function formatP(p) {
  return p < 0.0001 ? "p < 0.0001" : `p = ${p.toFixed(4)}`;
}

function formatCount(count, noun, plural = `${noun}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
}

/** Round numbers that divide [low, high] into about `wanted` steps. */
function ticks(low, high, wanted = 5) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) found.push(at * step);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) + (step / power === 2.5 ? 1 : 0);
  return found.map((at) => [at, Math.abs(at) < step / 1e6 ? "0" : at.toFixed(Math.min(decimals, 12))]);
}
