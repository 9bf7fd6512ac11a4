// What the theme leaves to those who read with a keyboard or a screen reader: tables that scroll can be reached, and
// groups of links have names that differ. The theme adds some of them after the page was read.
const mend = () => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) wrap.tabIndex = 0;
  for (const nav of document.querySelectorAll("nav.md-code__nav:not([aria-label])")) {
    nav.ariaLabel = `Block of code ${[...document.querySelectorAll("nav.md-code__nav")].indexOf(nav) + 1}`;
  }
  for (const nav of document.querySelectorAll("nav.md-nav[aria-labelledby^='__nav']")) {
    nav.ariaLabel = `${nav.querySelector(".md-nav__title").textContent.trim()}, level ${nav.dataset.mdLevel}`;
    nav.removeAttribute("aria-labelledby");
  }
};
mend();
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
