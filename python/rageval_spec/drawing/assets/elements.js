// Builds elements. Texts only ever become text nodes, so that no answer can act as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element; `on` holds listeners, null attributes are left out, children are elements, texts or lists of them. */
function el(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  fill(element, children);
  return element;
}

function fill(element, children) {
  for (const child of children.flat(3)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

function refill(element, ...children) {
  element.replaceChildren();
  return fill(element, children);
}

/** A name of the user's: isolated, so that its direction does not move its neighbours. */
function name(text, attributes = {}) {
  return el("bdi", { class: "name", ...attributes }, text);
}

/** A text that only screen readers speak. */
function spoken(text) {
  return el("span", { class: "sr" }, text);
}

function select(label, options, value, change) {
  const chosen = el("select", { on: { change: () => change(chosen.value) } });
  for (const [key, text] of options) chosen.append(el("option", { value: key, selected: key === value }, text));
  return el("label", { class: "field" }, el("span", {}, label), chosen);
}

function table(head, rows, attributes = {}) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${attributes["aria-label"]}` },
    el("table", attributes, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

const LONG = 1500;
const MANY_LINES = 25;

/** An element with a text of more than `longest` characters behind a fold, which opens by its button or when the focus goes into it. */
function foldLong(node, text, what, longest = LONG) {
  const lines = MANY_LINES * (longest / LONG);
  if (text.length <= longest && text.split("\n", lines + 1).length <= lines) return node;
  const box = el("div", { class: "fold", on: { focusin: () => setOpen(true) } }, node);
  const toggle = el("button", { type: "button", class: "quiet noprint", on: { click: () => setOpen(!box.classList.contains("open")) } });
  const size = formatCount([...text].length, "character");
  function setOpen(isOpen) {
    box.classList.toggle("open", isOpen);
    toggle.setAttribute("aria-expanded", String(isOpen));
    toggle.textContent = isOpen ? "Show less" : `Show all ${size}`;
    toggle.append(spoken(` of the ${what}`));
  }
  setOpen(false);
  return [box, toggle];
}

function announce(text) {
  document.getElementById("live").textContent = text;
}
