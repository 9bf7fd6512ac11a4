"""The application: pages and actions by path, run one at a time in a thread, with errors in plain words.

Its pages have links to all others above the same content that the static files have.
"""

from __future__ import annotations

import html
import json
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.html_shell import hash_source, join_scripts, join_styles, read_asset
from rageval_spec.endpoints.http_server import PATIENCE, Refusal, read_body
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.local_view.access_guard import AccessGuard

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LARGEST = 1024 * 1024
"""The most bytes of a request: an edited prompt is the largest thing that is sent."""


class Asked(NamedTuple):
    """What a request asks for: the parts of its path, its query, and its content (JSON) if it is an action."""

    path: Mapping[str, str]
    query: Sequence[tuple[str, str]] = ()
    content: Mapping[str, Any] = {}

    def find(self, name: str) -> str | None:
        """The first value of a key of the query."""
        return next((value for key, value in self.query if key == name), None)

    def read(self, name: str) -> str:
        """A text of the content. Raises `Refusal` if it is not one."""
        value = self.content.get(name)
        if not isinstance(value, str):
            raise Refusal(400, f"'{name}' is missing or not a text")
        return value


class Reply(NamedTuple):
    """What an address answers."""

    content: bytes
    media_type: str = "text/html; charset=utf-8"
    status: int = 200


class Address(NamedTuple):
    """A path as Starlette writes it, and what answers there; `is_action` for POST with JSON."""

    path: str
    answer: Callable[[Asked], Reply]
    is_action: bool = False


def reply_json(content: Any, status: int = 200) -> Reply:
    """JSON in ASCII, which any text can be written in."""
    return Reply(json.dumps(content).encode(), "application/json", status)


def make_view_app(addresses: Sequence[Address], token: str) -> Starlette:
    """The application, which answers only requests with the token.

    Raises:
        UsageError: uvicorn or Starlette is not installed.
    """
    try:
        import uvicorn  # noqa: F401 - both or neither
        from starlette.applications import Starlette
    except ImportError as error:
        message = "to open the view, install uvicorn and Starlette: pip install 'rageval-spec[serve]'"
        raise UsageError(message) from error
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.routing import Route

    # Pages of two large records are never in memory together, and a label does not wait for a page.
    turns = {False: Lock(), True: Lock()}

    async def refuse(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _respond(_explain(error.status_code, "There is no such page.", is_action=False))

    routes = [
        Route(one.path, _make_endpoint(one, turns[one.is_action]), methods=["POST"] if one.is_action else ["GET"])
        for one in addresses
    ]
    handlers: Any = {HTTPException: refuse}
    return Starlette(routes=routes, middleware=[Middleware(AccessGuard, token=token)], exception_handlers=handlers)


def _make_endpoint(address: Address, turn: Lock) -> Callable[[Request], Any]:
    from starlette.concurrency import run_in_threadpool

    async def show(request: Request) -> Response:
        try:
            advice = "send shorter texts"
            body = await read_body(request, LARGEST, PATIENCE, advice) if address.is_action else b"{}"
        except Refusal as refusal:
            return _respond(_explain(refusal.status, str(refusal), is_action=True))
        return _respond(await run_in_threadpool(_answer, address, turn, request, body))

    return show


def _answer(address: Address, turn: Lock, request: Request, body: bytes) -> Reply:
    try:
        asked = Asked(request.path_params, request.query_params.multi_items(), _parse(body))
        with turn:
            return address.answer(asked)
    except Refusal as refusal:
        status, told = refusal.status, str(refusal)
    except RagevalError as error:
        status, told = 422, str(error)
    except Exception as error:  # one page that breaks must not end the server, nor show a traceback
        if os.environ.get("RAGEVAL_DEBUG"):
            traceback.print_exc()
        found = f"{type(error).__name__}: {error}"
        status = 500
        told = f"This page broke. {found}. Set RAGEVAL_DEBUG=1 to see the traceback in the terminal."
    return _explain(status, told, is_action=address.is_action)


def _parse(body: bytes) -> Mapping[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise Refusal(400, "the request is not an object of JSON")
    return content


def _explain(status: int, told: str, *, is_action: bool) -> Reply:
    shown = make_visible(told, keep="\n")
    return reply_json({"error": shown}, status) if is_action else Reply(write_message(shown), status=status)


def _respond(reply: Reply) -> Response:
    from starlette.responses import Response as Answer

    return Answer(reply.content, reply.status, media_type=reply.media_type)


_ASSETS = Path(__file__).parent / "assets"
_STYLES = ("page.css", "overview.css", "texts.css", "questions.css", "view.css")
PLACES = (("Records", "/"), ("Trends", "/trends"), ("Side by side", "/compare"), ("Label", "/label"))
"""The pages that every view has."""
_NAVIGATION = "".join(f'<a href="{address}">{name}</a>' for name, address in PLACES)


def read_own(name: str) -> str:
    """A style, script or template of the view."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def write_framed(title: str, body: str, scripts: Iterable[str] = ()) -> bytes:
    """A page of the view. `body` is HTML whose texts are escaped; only these scripts and our style may act."""
    style = join_styles(_STYLES) + read_own("navigation.css") + read_own("view.css")
    script = join_scripts([read_asset("elements.js"), *map(read_own, scripts)]) if scripts else ""
    policy = (
        f"default-src 'none'; style-src {hash_source(style)}; connect-src 'self'; form-action 'self'; base-uri 'none'"
        + (f"; script-src {hash_source(script)}" if script else "")
    )
    import jinja2

    page = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        read_own("frame.html.jinja")
    )
    shown = page.render(
        navigation=_NAVIGATION, policy=policy, style=style, script=script, title=make_visible(title), body=body
    )
    return shown.encode("utf-8", "replace")


def write_message(told: str) -> bytes:
    """A page that says what is wrong, and what to do."""
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in told.splitlines())
    return write_framed("rageval-spec view", f"<h1>This page cannot be shown</h1>{lines}")


def add_links(page: bytes, more: Iterable[tuple[str, str]] = ()) -> bytes:
    """A static page with the links above its content, and more of them: names and addresses."""
    style = read_own("navigation.css")
    policy = f"style-src {hash_source(style)} "
    others = "".join(f'<a href="{html.escape(to)}">{html.escape(make_visible(name))}</a>' for name, to in more)
    links = f'<style>{style}</style><nav class="places" aria-label="Pages">{_NAVIGATION}{others}</nav>'.encode()
    head, body, content = page.partition(b"<body")
    end = content.index(b"</a>", 0, 500) + 4 if b'class="skip"' in content[:500] else content.index(b">") + 1
    allowed = html.escape(policy).encode()
    return b"".join((head.replace(b"style-src ", allowed, 1), body, content[:end], links, content[end:]))
