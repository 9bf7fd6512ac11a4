// The theme of the page: that of the device, light or dark. The choice is kept where the browser can.

const THEMES = { __proto__: null, auto: ["◐", "Theme of the device"], light: ["☀", "Light theme"], dark: ["☾", "Dark theme"] };

function readTheme() {
  try {
    return localStorage.getItem("rageval-theme") ?? "auto";
  } catch {
    return "auto"; // a page in a sandbox has no storage
  }
}

function applyTheme(theme) {
  const [sign, text] = THEMES[theme] ?? THEMES.auto;
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = sign;
  button.setAttribute("aria-label", `${text}; change`);
  button.title = text;
  button.dataset.now = theme;
}

function changeTheme() {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(document.getElementById("theme").dataset.now) + 1) % names.length];
  applyTheme(next);
  try {
    localStorage.setItem("rageval-theme", next);
  } catch {
    // the choice then lasts as long as the page
  }
}
