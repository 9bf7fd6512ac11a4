"""Markdown: its text as it is written, with the places of its headings, paragraphs, lists, code and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rageval_spec.generation.blocks import Block, BlockKind, Content, trim_block

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(.*?\n)?(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
_VERSIONS = ("version", "revision", "last_updated", "last_modified", "lastmod", "updated", "date")
_KINDS: dict[str, BlockKind] = {
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
    version = next((str(matter[name]) for name in _VERSIONS if matter.get(name)), "")
    return Content(text, blocks, str(matter.get("title") or "") or find_title(blocks), version)


def find_title(blocks: Sequence[Block]) -> str:
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


def _find_blocks(text: str) -> Iterator[Block]:
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    at = 0
    for number, token in enumerate(tokens):
        kind = _KINDS.get(token.type)
        if token.level or kind is None or token.map is None:
            continue
        start, end = starts[token.map[0]], min(starts[token.map[1]], len(text))
        yield from trim_block("markup", text, at, start)  # definitions of links are in no token
        if kind == "heading":
            words = _read_words(tokens[number + 1])
            yield from trim_block(kind, text, start, end, int(token.tag[1:]), words)
        else:
            yield from trim_block(kind, text, start, end)
        at = end
    yield from trim_block("markup", text, at, len(text))


def _read_words(inline: Token) -> str:
    """What a line says without its markup."""
    parts = [child.content if child.type != "softbreak" else " " for child in inline.children or ()]
    return " ".join("".join(parts).split())
