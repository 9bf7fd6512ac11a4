"""Builds HTML pages around data: the template, its style and script, and the packed data.

The page's policy lets only this style and script act. Each part of the data is JSON, gzipped, as base64 text that can
stand in a script element.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from string import Template
from typing import Any

from rageval_spec.diagnostics import make_visible
from rageval_spec.libraries import compile_later

CELL = 'style="text-align:left;padding:.2em .8em .2em 0;vertical-align:top"'
"""The style of a cell in a notebook, which has no style sheet of ours."""
_COMMENTS = compile_later(r"(?ms)^[ ]*(?://[^\n]*|/\*\*.*?\*/)\n")
"""Comments on lines of their own."""
_ASSETS = Path(__file__).parent / "assets"
_STYLES = ("page.css", "overview.css", "texts.css", "questions.css")
_SCRIPTS = (
    "elements.js",
    "numbers.js",
    "parts.js",
    "marks.js",
    "theme.js",
    "keyboard.js",
    "data.js",
    "claims.js",
    "charts.js",
    "overview.js",
    "spread.js",
    "selection.js",
    "list.js",
    "card.js",
    "evidence.js",
    "provenance.js",
    "main.js",
)


def build_shell(title: str, parts: Iterable[tuple[str, str]], has_files: bool) -> bytes:
    """The page of the report `html`.

    Args:
        title: the title of the window.
        parts: the names and the base64 texts of the parts that the page itself holds.
        has_files: whether further parts are scripts in files beside the page, which the policy must then allow.
    """
    return build_page(title, parts, join_styles(_STYLES), join_scripts(map(read_asset, _SCRIPTS)), has_files)


def build_page(
    title: str,
    parts: Iterable[tuple[str, str]],
    style: str,
    script: str,
    has_files: bool = False,
    *,
    sends: bool = False,
) -> bytes:
    """A page as HTML, with a policy that allows its own style (CSS) and script (of `join_scripts`) and nothing else.

    A page that `sends` may call the server that it comes from. The other arguments are those of `build_shell`."""
    own, calls = "'self' " if has_files else "", "connect-src 'self'; " if sends else ""
    policy = (
        f"default-src 'none'; script-src {own}{hash_source(script)}; style-src {hash_source(style)}; "
        f"{calls}base-uri 'none'; form-action 'none'"
    )
    fill = {"title": html.escape(title), "policy": html.escape(policy), "style": style, "script": script}
    head, tail = (Template(half).substitute(fill) for half in read_asset("page.html").split("$parts"))
    page = BytesIO()
    page.write(head.encode("utf-8", "replace"))
    for name, text in parts:
        page.write(f'<script type="text/plain" data-part="{html.escape(name)}">{html.escape(text)}</script>\n'.encode())
    page.write(tail.encode("utf-8", "replace"))
    return page.getvalue()


def fill_page(template: str, style: str, **values: Any) -> bytes:
    """A page without a script from a template of jinja2, which escapes all texts; its policy allows its own style."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    policy = f"default-src 'none'; style-src {hash_source(style)}; base-uri 'none'; form-action 'none'"
    page = environment.from_string(template).render(policy=policy, style=style, **values)
    return page.encode("utf-8", "replace")


def hash_source(text: str) -> str:
    """What a page's policy calls a style or script that may act."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def join_styles(names: Iterable[str]) -> str:
    return "\n" + "".join(map(read_asset, names))


def join_scripts(scripts: Iterable[str]) -> str:
    """The texts of several scripts as one function, so that their names stay out of the window's.

    Comments are left out: they would be a tenth of every page.
    """
    return '\n(() => {\n"use strict";\n' + _COMMENTS.sub("", "".join(scripts)) + "})();\n"


def read_asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


_LEVEL = 2
"""Level 4 takes half as long again for 7% less, and level 6 four times as long for 15% less."""


def dump_json(data: Any) -> bytes:
    """Compact JSON in UTF-8. Half a surrogate pair, which UTF-8 does not have, becomes a question mark."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def pack(content: bytes) -> str:
    """The content gzipped, without a time in it, as base64: letters, digits, `+`, `/` and `=`."""
    return base64.b64encode(gzip.compress(content, _LEVEL, mtime=0)).decode("ascii")


def write_script(name: str, packed: str) -> bytes:
    """A script that hands a packed part to the page that loads it."""
    return f'ragevalPart("{name}","{packed}");\n'.encode("ascii")


def show_text(text: str) -> str:
    """A text as HTML that shows it as it is."""
    return html.escape(make_visible(text))


def draw_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table for notebooks, which have no style sheet: each cell has its own style."""
    heads = "".join(f'<th scope="col" {CELL}>{show_text(name)}</th>' for name in head)
    cells = ("".join(f"<td {CELL}>{show_text(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
