"""Reads Markdown, HTML and PDF: the text, and where its headings, paragraphs, code, tables and pages lie in it.

- Markdown: the text as it is written.
- HTML: the text that a reader of the page sees, without its navigation and scripts.
- PDF: the text of each page, without headers and footers. It needs the package pypdf, the extra `pdf`.
"""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rageval_spec.errors import DataError
from rageval_spec.libraries import compile_later
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from pypdf import PdfReader


BlockKind = Literal["heading", "paragraph", "list", "code", "table", "markup"]


class TextBlock(NamedTuple):
    """A part of a text that belongs together: `text[start:end]`, without white space around it.

    `markup` is for programs, such as an HTML block of a Markdown file. `level` is that of a heading, from 1; otherwise
    it is 0. `words` is what a heading says without its markup.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    words: str = ""


class Content(NamedTuple):
    """The text of one file, with line feeds between lines.

    Attributes:
        blocks: its parts, in order, without overlaps; together they contain everything except white space.
        title, version: what the file itself says they are; "" if it does not say.
        pages: the offset at which each page begins; empty if the file has no pages.
        unread: what could not be read in a file that was otherwise read: pages without text.
    """

    text: str
    blocks: tuple[TextBlock, ...]
    title: str = ""
    version: str = ""
    pages: tuple[int, ...] = ()
    unread: str = ""


def find_paragraphs(text: str, start: int = 0, end: int | None = None) -> Iterator[TextBlock]:
    """The paragraphs of plain text between two offsets; blank lines separate them."""
    at, end = start, len(text) if end is None else end
    for gap in re.finditer(r"\n[^\S\n]*(?=\n)|\Z", text[start:end]):
        yield from trim_block("paragraph", text, at, start + gap.start())
        at = start + gap.end()


def trim_block(
    kind: BlockKind, text: str, start: int, end: int, level: int = 0, words: str = ""
) -> Iterator[TextBlock]:
    """A block without the white space around it; nothing if there is only white space."""
    piece = text[start:end]
    if content := piece.strip():
        first = start + len(piece) - len(piece.lstrip())
        yield TextBlock(kind, first, first + len(content), level, words)


_FRONT_MATTER = compile_later(r"---[^\S\n]*\n(.*?\n)?(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
_MARKDOWN_VERSIONS = ("version", "revision", "last_updated", "last_modified", "lastmod", "updated", "date")
_MARKDOWN_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading", "paragraph_open": "paragraph", "bullet_list_open": "list", "ordered_list_open": "list",
    "blockquote_open": "paragraph", "fence": "code", "code_block": "code", "table_open": "table",
    "html_block": "markup", "hr": "markup",
}  # fmt: skip


def read_markdown(source: str) -> Content:
    """The text of a Markdown file without its front matter, whose `title` and `version` (or date) are kept.

    Markup stays in the text, so that offsets are those of what people wrote.
    """
    matter, text = _split_front_matter(source)
    blocks = tuple(_find_blocks(text))
    version = next((str(matter[name]) for name in _MARKDOWN_VERSIONS if matter.get(name)), "")
    return Content(text, blocks, str(matter.get("title") or "") or find_title(blocks), version)


def find_title(blocks: Sequence[TextBlock]) -> str:
    """The first heading of the highest level, if it is the only one of that level; otherwise ""."""
    headings = [block for block in blocks if block.kind == "heading"]
    highest = [block for block in headings if block.level == min(heading.level for heading in headings)]
    return highest[0].words if len(highest) == 1 and highest[0] is headings[0] else ""


def _split_front_matter(source: str) -> tuple[dict[str, Any], str]:
    """The values of YAML between two lines of dashes at the beginning, and the text after it."""
    import yaml

    found = _FRONT_MATTER.match(source)
    if found is None:
        return {}, source
    try:
        matter = yaml.safe_load(found[1] or "")
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, source
    return (matter, source[found.end() :]) if isinstance(matter, dict) else ({}, source)


def _find_blocks(text: str) -> Iterator[TextBlock]:
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    at = 0
    for number, token in enumerate(tokens):
        kind = _MARKDOWN_KINDS.get(token.type)
        if token.level or kind is None or token.map is None:
            continue
        start, end = starts[token.map[0]], min(starts[token.map[1]], len(text))
        yield from trim_block("markup", text, at, start)  # definitions of links are in no token
        if kind == "heading":
            inline = tokens[number + 1].children or ()
            parts = [child.content if child.type != "softbreak" else " " for child in inline]
            words = " ".join("".join(parts).split())
            yield from trim_block(kind, text, start, end, int(token.tag[1:]), words)
        else:
            yield from trim_block(kind, text, start, end)
        at = end
    yield from trim_block("markup", text, at, len(text))


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
_HTML_KINDS: dict[str, BlockKind] = {"pre": "code", "table": "table", "ul": "list", "ol": "list", "dl": "list"}
_HEADING = compile_later(r"h([1-6])\Z")
_CLOSES = {"li": {"li"}, "p": {"p"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "tr": {"tr"}, "td": _CELLS, "th": _CELLS}
"""Open tags that a tag ends, where HTML lets people leave the end tag out."""
_BARRIERS = frozenset({"ul", "ol", "dl", "table", "body", "main", "article", "section", "div"})
_HTML_VERSIONS = frozenset({"article:modified_time", "last-modified", "dcterms.modified", "date"})
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


def _join_lines(lines: Sequence[_Line]) -> tuple[str, tuple[TextBlock, ...]]:
    """The lines as one text. Lines of a list, a table or code follow one another without a gap."""
    parts, blocks, at = list[str](), list[TextBlock](), 0
    for line in lines:
        continues = bool(blocks) and blocks[-1].kind == line.kind and line.kind in {"list", "table", "code"}
        gap = "\n" if continues else "\n\n" if blocks else ""
        start, at = at + len(gap), at + len(gap) + len(line.text)
        parts += (gap, line.text)
        if continues:
            blocks[-1] = blocks[-1]._replace(end=at)
        else:
            blocks.append(TextBlock(line.kind, start, at, line.level, line.text if line.level else ""))
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
        return " ".join("".join(self._title).split())

    def choose_lines(self) -> list[_Line]:
        """The lines of the page's main part if it has text, otherwise all; nothing if there are only headings."""
        for lines in ([line for line in self._lines if line.is_main], self._lines):
            if any(line.kind != "heading" for line in lines):
                return lines
        return []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
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
        tags = [name for name, _ in self._open[-2:]]
        if tags[-1:] == ["title"] and "svg" not in tags:
            self._title.append(data)
        elif not self._hidden:
            self._pending.append(data)

    def end_line(self) -> None:
        raw = "".join(self._pending)
        self._pending.clear()
        tags = [name for name, _ in self._open]
        level = next((int(found[1]) for tag in reversed(tags) if (found := _HEADING.match(tag))), 0)
        kind: BlockKind = (
            "heading" if level else next((_HTML_KINDS[tag] for tag in tags if tag in _HTML_KINDS), "paragraph")
        )
        text = _clean_html_text(raw, keeps_lines=not level, keeps_space=kind == "code")
        if text:
            self._lines.append(_Line(kind, level, text, not _MAIN.isdisjoint(tags)))

    def _take_void(self, tag: str, values: dict[str, str]) -> None:
        if tag == "meta":
            name = (values.get("property") or values.get("name") or values.get("http-equiv") or "").lower()
            if name in _HTML_VERSIONS and not self.version:
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


def _clean_html_text(raw: str, *, keeps_lines: bool, keeps_space: bool) -> str:
    if keeps_space:
        return raw.replace(_BREAK, "\n").strip("\n").rstrip() if raw.strip() else ""
    lines = [" ".join(line.split()) for line in raw.split(_BREAK)]
    return ("\n" if keeps_lines else " ").join(line for line in lines if line.strip(" |"))


_HYPHENATED = compile_later(r"(?<=[^\W\d_])-\n(?=[a-zà-öø-ÿа-я])")
_FEWEST_PAGES = 3
"""Among fewer pages, a line that stands on more than half of them may be chance."""


def read_pdf(data: bytes) -> Content:
    """The pages of a PDF, a blank line between two, with the offset of each page; `DataError` if it cannot be read.

    Words that are hyphenated at the end of a line are joined. Lines that stand at the top or bottom of more than half
    of the pages, apart from numbers, are headers and footers and left out. Pages without text are named in `unread`.
    """
    title, version, pages = _extract(data)
    texts = [_HYPHENATED.sub("", page) for page in _drop_repeated(pages)]
    empty = [number for number, text in enumerate(texts, 1) if not text.strip()]
    if len(empty) == len(texts):
        raise DataError("no page has text; if the pages are scanned images, run OCR over them first")
    text, starts, blocks = "", list[int](), list[TextBlock]()
    for page in texts:
        gap = "\n\n" if text and page.strip() else ""
        starts.append(len(text) + len(gap))
        text += gap + page.strip()
        blocks += find_paragraphs(text, starts[-1])
    return Content(text, tuple(blocks), title, version, tuple(starts), _describe_empty(empty, len(texts)))


def _extract(data: bytes) -> tuple[str, str, list[str]]:
    try:
        from pypdf import PasswordType, PdfReader
        from pypdf.errors import DependencyError
    except ImportError as error:
        raise DataError("reading PDF needs the package pypdf: pip install 'rageval-spec[pdf]'") from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it says of a damaged page comes without the file
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
            raise DataError("it is encrypted; save it without a password")
        texts = (page.extract_text().replace("\x00", "") for page in reader.pages)
        return *_read_metadata(reader), ["\n".join(map(str.rstrip, text.splitlines())) for text in texts]
    except DependencyError as error:
        raise DataError("it is encrypted; save it without encryption, or install the package cryptography") from error
    except (DataError, MemoryError):
        raise
    except Exception as error:  # damaged files raise almost anything inside pypdf
        raise DataError(f"the PDF is damaged ({error or type(error).__name__})") from error


def _read_metadata(reader: PdfReader) -> tuple[str, str]:
    found = reader.metadata
    title = " ".join(str(found.title or "").split()) if found else ""
    try:
        changed = found.modification_date if found else None
    except ValueError:
        changed = None
    # Programs that print to PDF write the name of the file as its title.
    is_title = bool(title) and not re.search(r"^untitled|^Microsoft Word - |\.\w{2,4}$", title, re.IGNORECASE)
    return title if is_title else "", changed.isoformat() if changed else ""


def _drop_repeated(pages: Sequence[str]) -> Iterator[str]:
    edges = Counter(edge for page in pages for edge in {_edge(page, 0), _edge(page, -1)} if edge)
    many = max(_FEWEST_PAGES, len(pages) // 2 + 1)
    for page in pages:
        lines = page.strip().split("\n")
        for place in (0, -1):
            if lines and edges[_edge("\n".join(lines), place)] >= many:
                lines.pop(place)
        yield "\n".join(lines)


def _edge(page: str, place: int) -> str:
    """The first or last line of a page with `#` for each number; "" on an empty page."""
    lines = page.strip().split("\n")
    return re.sub(r"\d+", "#", lines[place].strip())


def _describe_empty(empty: Sequence[int], count: int) -> str:
    if not empty:
        return ""
    named = ", ".join(map(str, empty[:5])) + (" and others" if len(empty) > 5 else "")
    return f"{len(empty)} of {count_noun(count, 'page')} without text (page {named}); scanned pages need OCR"
