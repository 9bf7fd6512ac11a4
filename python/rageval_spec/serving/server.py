"""The applications of servers: one of a few small pages, and one that checks answers within limits.

Checks run in threads of their own, so that pages such as `/healthz` are answered meanwhile. A request beyond a limit is
answered with 408, 413, 422 or 503 and the limit, one that cannot be read with 400 and what to send.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.dataclass import dataclass
from rageval_spec.endpoints.http_server import PATIENCE, Refusal, knows_token, read_body
from rageval_spec.errors import UsageError
from rageval_spec.libraries import compile_later
from rageval_spec.serving.answer_check import OUTCOMES, AnswerCheck
from rageval_spec.spec.text.places import quote

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send


class Page(NamedTuple):
    """What a path answers. `plain` is for clients that accept `text/plain`, and not this media type by name."""

    content: bytes
    media_type: str = "text/plain; charset=utf-8"
    status: int = 200
    plain: Callable[[], Page] | None = None


_OPEN = ("/healthz", "/ready")
_JSON = "application/json"


def make_app(pages: Mapping[str, Callable[[], Page]], token: str | None = None) -> Starlette:
    """An application with a page for each path; making one must not take long, because others wait meanwhile.

    With a token, only requests that send it are answered, except at `/healthz` and `/ready`: what asks there rarely has
    one.

    Raises:
        UsageError: uvicorn or Starlette is not installed.
    """
    try:
        import uvicorn  # noqa: F401 - both or neither
        from starlette.applications import Starlette
    except ImportError as error:
        message = "to serve over HTTP, install uvicorn and Starlette: pip install 'rageval-spec[serve]'"
        raise UsageError(message) from error
    from starlette.middleware import Middleware
    from starlette.responses import Response as Answer
    from starlette.routing import Route

    def route(path: str, make: Callable[[], Page]) -> Route:
        async def show(request: Request) -> Response:
            page, accepted = make(), request.headers.get("accept", "")
            if page.plain is not None and "text/plain" in accepted and page.media_type.split(";")[0] not in accepted:
                page = page.plain()
            return Answer(page.content, page.status, media_type=page.media_type)

        return Route(path, show, methods=["GET"])

    guard = [] if token is None else [Middleware(_Guard, token=token)]
    return Starlette(routes=[route(path, make) for path, make in pages.items()], middleware=guard)


class _Guard:
    """Lets only requests with the token through, before anything of their bodies is read."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        if scope["path"] in _OPEN or knows_token(given, self._token):
            await self._app(scope, receive, send)
            return
        told = "send the server's token: authorization: Bearer TOKEN"
        await _reply({"error": told}, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)


def _reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON in ASCII, which any text can be written in."""
    from starlette.responses import Response as Answer

    return Answer(json.dumps(content), status, headers, media_type=_JSON)


@dataclass(frozen=True)
class CheckLimits:
    """What checks can use at most.

    Attributes:
        at_once: the checks that run at a time.
        most: the checks that run or wait for their turn; a further one is answered with 503.
        seconds: for a check, from when its request came; a longer one is answered with 503, and goes on until it ends.
        patience: the seconds for a request, from its first byte to its last one.
    """

    at_once: int = 16
    most: int = 64
    seconds: float = 30.0
    patience: float = PATIENCE


LARGEST = 1024 * 1024
"""The most bytes of a request."""
MOST_CONTEXTS = 100
LONGEST = 100_000
"""The most characters of a question, a context or an answer."""
EXAMPLE = '{"question": "...", "contexts": ["..."], "answer": "..."}'
_HEADERS = {408: {"Connection": "close"}, 503: {"Retry-After": "1"}}
"""The headers of refusals, by their status."""
_SURROGATE = compile_later("[\ud800-\udfff]")
"""What JSON can write as an escape, but no text has."""


def make_check_app(
    check: AnswerCheck, name: str, token: str | None = None, limits: CheckLimits | None = None
) -> Starlette:
    """The application: `POST /check`, `/openapi.json`, `/healthz` and `/ready`."""
    description = json.dumps(describe_api(name, has_token=token is not None)).encode()
    pages = {"/openapi.json": lambda: Page(description, _JSON), **dict.fromkeys(_OPEN, lambda: Page(b"ok\n"))}
    app = make_app(pages, token)
    from starlette.exceptions import HTTPException

    limits = limits or CheckLimits()
    pool, places = ThreadPoolExecutor(limits.at_once, thread_name_prefix="check"), BoundedSemaphore(limits.most)

    async def run(question: str, contexts: list[str] | None, answer: str) -> dict[str, Any]:
        if not places.acquire(blocking=False):
            raise Refusal(503, f"at most {limits.most} checks are taken at a time; try again in a second")
        future = pool.submit(check.check, question, contexts, answer)
        future.add_done_callback(lambda _: places.release())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), limits.seconds)
        except TimeoutError:
            raise Refusal(503, f"the check took longer than {limits.seconds:g} s; hold the answer back") from None

    async def answer(request: Request) -> Response:
        try:
            body = await read_body(request, LARGEST, limits.patience, "send fewer or shorter contexts")
            return _reply(await run(*read_request(body)))
        except Refusal as refusal:
            return _reply({"error": str(refusal)}, refusal.status, _HEADERS.get(refusal.status))

    async def refuse(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        told = f"{error.detail}; there are POST /check and GET {', '.join(pages)}"
        return _reply({"error": told}, error.status_code, error.headers)

    app.add_route("/check", answer, methods=["POST"])
    app.add_exception_handler(HTTPException, refuse)
    return app


def read_request(body: bytes) -> tuple[str, list[str] | None, str]:
    """The question, the contexts and the answer of a request. Raises `Refusal` if it is not one."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, f"the body is not JSON in UTF-8; send {EXAMPLE}") from None
    if not isinstance(found, Mapping):
        raise Refusal(400, f"the body is not an object; send {EXAMPLE}")
    if unknown := sorted(set(found) - {"question", "answer", "contexts"}):
        raise Refusal(400, f"the key {quote(unknown[0])} is not known; send {EXAMPLE}")
    contexts = found.get("contexts")
    if contexts is not None and not isinstance(contexts, list):
        raise Refusal(400, f"'contexts' is not a list of texts; send {EXAMPLE}")
    if contexts is not None and len(contexts) > MOST_CONTEXTS:
        raise Refusal(422, f"there are {len(contexts):,} contexts; at most {MOST_CONTEXTS} are taken")
    named = {"'question'": found.get("question"), "'answer'": found.get("answer")}
    named |= {f"'contexts', number {place},": text for place, text in enumerate(contexts or (), 1)}
    for name, text in named.items():
        if not isinstance(text, str):
            raise Refusal(400, f"{name} is missing or not a text; send {EXAMPLE}")
        if len(text) > LONGEST:
            raise Refusal(422, f"{name} has {len(text):,} characters; at most {LONGEST:,} are taken")
        if half := _SURROGATE.search(text):
            raise Refusal(400, f"{name} has half of a character, {half[0]!a}; send whole ones")
    return found["question"], contexts, found["answer"]


def describe_api(name: str, *, has_token: bool) -> dict[str, Any]:
    """The OpenAPI document."""
    text = {"type": "string", "maxLength": LONGEST}
    told = "The texts that the answer was written from."
    contexts = {"type": ["array", "null"], "items": text, "maxItems": MOST_CONTEXTS, "description": told}
    outcome = {"enum": [*reversed(OUTCOMES)], "description": "The worst outcome of all metrics."}
    metric = {
        "metric": {"type": "string"},
        "outcome": {"enum": outcome["enum"]},
        "reason": {"type": "string"},
        "value": {"type": ["number", "null"], "description": "null: it could not be measured."},
        "stage": {"type": ["string", "null"], "description": "The stage that decided, if the judge has several."},
    }
    found = {
        "outcome": outcome,
        "reasons": {"type": "array", "items": {"type": "string"}},
        "checks": {"type": "array", "items": _describe_object(metric)},
        "seconds": {"type": "number", "minimum": 0, "description": "How long the check took."},
    }
    schemas = {
        "Request": _describe_object({"question": text, "contexts": contexts, "answer": text}, {"contexts"}),
        "Outcome": _describe_object(found),
        "Error": _describe_object({"error": {"type": "string", "description": "What to send instead."}}),
    }
    refused = {
        "400": "The request is not one.",
        **({"401": "The token is missing or wrong."} if has_token else {}),
        "408": f"The request did not come within {PATIENCE:g} s.",
        "413": f"The request has more than {LARGEST:,} bytes.",
        "422": f"There are more than {MOST_CONTEXTS} contexts, or a text has more than {LONGEST:,} characters.",
        "503": "Too many checks are under way, or this one took too long: hold the answer back.",
    }
    replies = {status: _describe_json("Error", why) for status, why in refused.items()}
    check = {
        "summary": "Check an answer before a user sees it.",
        "operationId": "check",
        "requestBody": {"required": True, **_describe_json("Request")},
        "responses": {"200": _describe_json("Outcome", "The outcome."), **replies},
    }
    scheme = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}} if has_token else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Checks of {name}", "version": "1"},
        "paths": {"/check": {"post": check | ({"security": [{"token": []}]} if has_token else {})}},
        "components": {"schemas": schemas, **scheme},
    }


def _describe_object(properties: Mapping[str, Any], optional: Collection[str] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _describe_json(schema: str, description: str | None = None) -> dict[str, Any]:
    told = {} if description is None else {"description": description}
    return {**told, "content": {_JSON: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}
