"""Pages are written in CommonMark, as GitHub reads it, and Zensical reads Python-Markdown: what differs is led over.

Python-Markdown wants a blank line above a list, and four spaces before what belongs to an item. Afterwards each kind of
block must be there as often in the HTML as markdown-it, which reads CommonMark with tables, finds it in the Markdown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lxml import html
from markdown_it import MarkdownIt

_BLOCKS = ("h2", "h3", "li", "table", "tr", "pre", "blockquote", "img")
PARSER = MarkdownIt("commonmark").enable("table")
_MARKER = re.compile(r"(?:[-*+]|\d+[.)]) +")


def indent_lists(text: str) -> str:
    """The same Markdown with the content of list items indented by four spaces a level, and lists apart from text."""
    lines = text.split("\n")
    widths: list[list[int]] = [[] for _ in lines]
    begins: dict[int, int] = {}
    apart: set[int] = set()
    """Lines that need a blank line above: the first of a list, and items below one with several blocks."""
    code: set[int] = set()
    for token in PARSER.parse(text):
        if token.type in ("fence", "code_block") and token.map:
            code |= {*range(*token.map)}
        if token.type in ("bullet_list_open", "ordered_list_open") and token.map and token.level == 0:
            apart.add(token.map[0])
        if token.type == "list_item_open" and token.map:
            first, end = token.map
            if "" in "\n".join(map(str.strip, lines[first:end])).strip().split("\n"):
                apart |= {first, end}
            marker = _MARKER.match(lines[first][sum(widths[first]) :].lstrip())
            begins[first] = len(widths[first])
            for number in range(first, end):
                widths[number].append(len(marker[0]) if marker else 2)
    led: list[str] = []
    for number, line in enumerate(lines):
        depth = begins.get(number, len(widths[number]))
        own = sum(widths[number][:depth])
        if number not in begins and number not in code:
            line = re.sub(r"^(\s*\d+)([.)] )", r"\1\\\2", line)  # a number that begins a line of a paragraph
        spaces = len(line) - len(line.lstrip(" "))
        if number in apart and led and led[-1].strip() and line.strip():
            led.append("")
        led.append(" " * 4 * depth + line[min(own, spaces) :] if depth and line.strip() else line)
    return "\n".join(led)


def find_differences(pages: Path, built: Path) -> Iterator[str]:
    """A sentence for each page of which the built HTML has another number of blocks."""
    for path in sorted(pages.rglob("*.md")):
        expected = _count(html.fromstring(f"<div>{PARSER.render(path.read_text(encoding='utf-8'))}</div>"))
        page = html.parse(str(built / path.relative_to(pages).with_suffix(".html")))
        found = _count(page.xpath("//article")[0])
        for tag in _BLOCKS:
            if found[tag] != expected[tag]:
                yield f"{path.relative_to(pages)}: {found[tag]} <{tag}> in the page, {expected[tag]} in its Markdown"


def _count(tree: html.HtmlElement) -> Counter[str]:
    return Counter(str(one.tag) for one in tree.iter() if one.tag in _BLOCKS)
