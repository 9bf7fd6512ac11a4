"""The frame of the view's pages: links to all pages above the same content that the static files have."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.html_shell import join_scripts, join_styles, read_asset

_ASSETS = Path(__file__).parent / "assets"
_STYLES = ("page.css", "overview.css", "texts.css", "questions.css", "view.css")
PLACES = (("Records", "/"), ("Trends", "/trends"), ("Side by side", "/compare"), ("Label", "/label"))
_NAVIGATION = "".join(f'<a href="{address}">{name}</a>' for name, address in PLACES)


def read_own(name: str) -> str:
    """A style, script or template of the view."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def write_framed(title: str, body: str, scripts: Iterable[str] = ()) -> bytes:
    """A page of the view. `body` is HTML whose texts are escaped; only these scripts and our style may act."""
    style = join_styles(_STYLES) + read_own("navigation.css") + read_own("view.css")
    script = join_scripts([read_asset("elements.js"), *map(read_own, scripts)]) if scripts else ""
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; connect-src 'self'; form-action 'self'; base-uri 'none'"
        + (f"; script-src {_hash(script)}" if script else "")
    )
    return _fill(policy=policy, style=style, script=script, title=make_visible(title), body=body)


def _fill(**values: Any) -> bytes:
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    page = environment.from_string(read_own("frame.html.jinja")).render(navigation=_NAVIGATION, **values)
    return page.encode("utf-8", "replace")


def write_message(told: str) -> bytes:
    """A page that says what is wrong, and what to do."""
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in told.splitlines())
    return write_framed("rageval-spec view", f"<h1>This page cannot be shown</h1>{lines}")


def add_navigation(page: bytes, more: Iterable[tuple[str, str]] = ()) -> bytes:
    """A static page with the links above its content, and more of them: names and addresses."""
    style = read_own("navigation.css")
    policy = f"style-src {_hash(style)} "
    others = "".join(f'<a href="{html.escape(to)}">{html.escape(make_visible(name))}</a>' for name, to in more)
    links = f'<style>{style}</style><nav class="places" aria-label="Pages">{_NAVIGATION}{others}</nav>'.encode()
    head, body, content = page.partition(b"<body")
    end = content.index(b"</a>", 0, 500) + 4 if b'class="skip"' in content[:500] else content.index(b">") + 1
    allowed = html.escape(policy).encode()
    return b"".join((head.replace(b"style-src ", allowed, 1), body, content[:end], links, content[end:]))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
