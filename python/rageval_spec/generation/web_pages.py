"""HTML: the text that a reader of the page sees, without its navigation and scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import NamedTuple

from rageval_spec.generation.blocks import Block, BlockKind, Content

_UNSEEN = frozenset(
    {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "canvas", "select", "button", "head"}
)
_NAVIGATION = frozenset({"nav", "footer", "menu", "dialog"})
_NAVIGATION_OUTSIDE = frozenset({"header", "aside"})
"""Tags that are navigation at the top of a page, and content inside an article: its title, a note."""
_NAVIGATION_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "toolbar"}
)
_MAIN = frozenset({"main", "article"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_CELLS = frozenset({"td", "th"})
_INLINE = _CELLS | {
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label",
    "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strong", "strike", "sub", "sup", "time", "tt", "u",
    "var",
}  # fmt: skip
_FLOWING = _INLINE | _UNSEEN
"""Tags that can stand inside a line."""
_KINDS: dict[str, BlockKind] = {"pre": "code", "table": "table", "ul": "list", "ol": "list", "dl": "list"}
_HEADING = re.compile(r"h([1-6])\Z")
_CLOSES = {"li": {"li"}, "p": {"p"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "tr": {"tr"}, "td": _CELLS, "th": _CELLS}
"""Open tags that a tag ends, where HTML lets people leave the end tag out."""
_BARRIERS = frozenset({"ul", "ol", "dl", "table", "body", "main", "article", "section", "div"})
_VERSIONS = frozenset({"article:modified_time", "last-modified", "dcterms.modified", "date"})
_BREAK = "\v"
_DEEPEST = 512
"""Tags inside this many others are not told apart: looking through all open tags would take too long."""


class _Line(NamedTuple):
    kind: BlockKind
    level: int
    text: str
    is_main: bool


def read_web_page(source: str) -> Content:
    """The visible text of a page: its headings, paragraphs, lists, code and tables, one below the other.

    If the page has a `main` or an `article`, only that is read. Where nothing would be left without the navigation,
    as on a page whose tags are not closed, the navigation is read too.
    """
    page = _read_page(source, whole=False)
    lines = page.choose_lines() or _read_page(source, whole=True).choose_lines()
    text, blocks = _join_lines(lines)
    title = page.title or next((block.words for block in blocks if block.level), "")
    return Content(text, blocks, title, page.version)


def _read_page(source: str, *, whole: bool) -> _Page:
    page = _Page(whole=whole)
    page.feed(source)
    page.close()
    page.end_line()
    return page


def _join_lines(lines: Sequence[_Line]) -> tuple[str, tuple[Block, ...]]:
    """The lines as one text. Lines of a list, a table or code follow one another without a gap."""
    parts, blocks, at = list[str](), list[Block](), 0
    for line in lines:
        continues = bool(blocks) and blocks[-1].kind == line.kind and line.kind in {"list", "table", "code"}
        gap = "\n" if continues else "\n\n" if blocks else ""
        start, at = at + len(gap), at + len(gap) + len(line.text)
        parts += (gap, line.text)
        if continues:
            blocks[-1] = blocks[-1]._replace(end=at)
        else:
            blocks.append(Block(line.kind, start, at, line.level, line.text if line.level else ""))
    return "".join(parts), tuple(blocks)


class _Page(HTMLParser):
    """Collects the lines of a page. A stack of open tags says what a text belongs to, and whether anyone sees it."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.version = ""
        self._whole = whole
        self._open: list[tuple[str, bool]] = []
        self._hidden = 0
        self._too_deep = 0
        self._title: list[str] = []
        self._pending: list[str] = []
        self._lines: list[_Line] = []

    @property
    def title(self) -> str:
        """What the tag `title` says."""
        return " ".join("".join(self._title).split())

    def choose_lines(self) -> list[_Line]:
        """The lines of the page's main part if it has text, otherwise all; nothing if there are only headings."""
        for lines in ([line for line in self._lines if line.is_main], self._lines):
            if any(line.kind != "heading" for line in lines):
                return lines
        return []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a tag, after closing what it ends."""
        values = {name: value or "" for name, value in attrs}
        if tag in _VOID:
            self._take_void(tag, values)
            return
        if len(self._open) >= _DEEPEST:
            self._too_deep += 1
            return
        self._close_implied(tag)
        if tag in _CELLS and self._pending and not self._hidden:
            self._pending.append(" | ")
        if tag not in _FLOWING and not self._hidden:
            self.end_line()
        hides = self._hides(tag, values)
        self._hidden += hides
        self._open.append((tag, hides))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take `<p/>` as browsers do: as an opened tag. Only tags of SVG can be closed in this way."""
        self.handle_starttag(tag, attrs)
        if any(name == "svg" for name, _ in self._open):
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close a tag and those that are open inside it. An end that belongs to nothing is ignored."""
        if self._too_deep:
            self._too_deep -= 1
            return
        places = [place for place, (name, _) in enumerate(self._open) if name == tag]
        if not places:
            return
        inside = self._open[places[-1] + 1 :]
        if tag in _INLINE and not all(name in _INLINE for name, _ in inside):
            return
        if tag not in _FLOWING and not self._hidden:
            self.end_line()
        self._hidden -= sum(hides for _, hides in self._open[places[-1] :])
        del self._open[places[-1] :]

    def handle_data(self, data: str) -> None:
        """Keep the text if someone sees it."""
        tags = [name for name, _ in self._open[-2:]]
        if tags[-1:] == ["title"] and "svg" not in tags:
            self._title.append(data)
        elif not self._hidden:
            self._pending.append(data)

    def end_line(self) -> None:
        """Keep what was collected as a line of what is open now."""
        raw = "".join(self._pending)
        self._pending.clear()
        tags = [name for name, _ in self._open]
        level = next((int(found[1]) for tag in reversed(tags) if (found := _HEADING.match(tag))), 0)
        kind: BlockKind = "heading" if level else next((_KINDS[tag] for tag in tags if tag in _KINDS), "paragraph")
        text = _clean(raw, keeps_lines=not level, keeps_space=kind == "code")
        if text:
            self._lines.append(_Line(kind, level, text, not _MAIN.isdisjoint(tags)))

    def _take_void(self, tag: str, values: dict[str, str]) -> None:
        if tag == "meta":
            name = (values.get("property") or values.get("name") or values.get("http-equiv") or "").lower()
            if name in _VERSIONS and not self.version:
                self.version = values.get("content", "").strip()
        elif tag == "br" and not self._hidden:
            self._pending.append(_BREAK)
        elif tag == "hr":
            self.end_line()

    def _close_implied(self, tag: str) -> None:
        if tag == "body":
            self.handle_endtag("head")
        for name, _ in reversed(self._open):
            if name in _CLOSES.get(tag, ()):
                self.handle_endtag(name)
                return
            if name in _BARRIERS:
                return

    def _hides(self, tag: str, values: dict[str, str]) -> bool:
        if tag in _UNSEEN or "hidden" in values or values.get("aria-hidden") == "true":
            return True
        if self._whole:
            return False
        outside = _MAIN.isdisjoint(name for name, _ in self._open)
        return tag in _NAVIGATION or values.get("role") in _NAVIGATION_ROLES or (outside and tag in _NAVIGATION_OUTSIDE)


def _clean(raw: str, *, keeps_lines: bool, keeps_space: bool) -> str:
    """A text without the white space that a browser does not show."""
    if keeps_space:
        return raw.replace(_BREAK, "\n").strip("\n").rstrip() if raw.strip() else ""
    lines = [" ".join(line.split()) for line in raw.split(_BREAK)]
    return ("\n" if keeps_lines else " ").join(line for line in lines if line.strip(" |"))
