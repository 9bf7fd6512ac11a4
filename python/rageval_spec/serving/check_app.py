"""`POST /check`: an answer is accepted, held back for a person, or rejected, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rageval_spec.serving.answer_check import AnswerCheck
from rageval_spec.serving.server import Page, make_app

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LARGEST = 1024 * 1024
"""The most bytes of a request."""
_TEXT = {"type": "string"}
_REQUEST = {
    "type": "object",
    "required": ["question", "answer"],
    "properties": {
        "question": _TEXT,
        "answer": _TEXT,
        "contexts": {"type": "array", "items": _TEXT, "description": "The texts that the answer was written from."},
    },
}
_METRIC = {
    "metric": _TEXT,
    "outcome": {"enum": ["accept", "person", "reject"]},
    "reason": _TEXT,
    "value": {"type": ["number", "null"]},
    "stage": {"type": ["string", "null"], "description": "The stage or judge that decided, if there are several."},
}
_REPLY = {
    "type": "object",
    "required": ["outcome", "reasons", "checks", "seconds"],
    "properties": {
        "outcome": {"enum": ["accept", "person", "reject"], "description": "The worst outcome of all metrics."},
        "reasons": {"type": "array", "items": _TEXT},
        "checks": {"type": "array", "items": {"type": "object", "properties": _METRIC}},
        "seconds": {"type": "number"},
    },
}


class UnusableRequest(ValueError):  # noqa: N818 - an answer, not a fault of the program
    """A request that is not one; the text says what to send."""


def make_check_app(check: AnswerCheck, name: str, token: str | None) -> Starlette:
    """The application: `POST /check`, `/openapi.json`, `/healthz` and `/ready`."""
    pages = {
        "/openapi.json": lambda: Page(json.dumps(describe_api(name, token)).encode(), "application/json"),
        "/healthz": lambda: Page(b"ok\n"),
        "/ready": lambda: Page(b"ok\n"),
    }
    app = make_app(pages, token=token)
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse

    async def answer(request: Request) -> Response:
        try:
            asked = read_request(await _read_body(request))
        except UnusableRequest as error:
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse(await run_in_threadpool(lambda: check.check(*asked)))

    app.add_route("/check", answer, methods=["POST"])
    return app


async def _read_body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST:
            raise UnusableRequest(f"a request has at most {LARGEST:,} bytes; send fewer or shorter contexts")
        parts.append(part)
    return b"".join(parts)


def read_request(body: bytes) -> tuple[str, list[str] | None, str]:
    """The question, the contexts and the answer of a request. Raises `UnusableRequest` if it is not one."""
    example = '{"question": "...", "contexts": ["..."], "answer": "..."}'
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise UnusableRequest(f"the body is not JSON; send {example}") from None
    if not isinstance(found, Mapping):
        raise UnusableRequest(f"the body is not an object; send {example}")
    for key in ("question", "answer"):
        if not isinstance(found.get(key), str):
            raise UnusableRequest(f"'{key}' is missing or not a text; send {example}")
    contexts = found.get("contexts")
    if contexts is not None and not (isinstance(contexts, list) and all(isinstance(one, str) for one in contexts)):
        raise UnusableRequest(f"'contexts' is not a list of texts; send {example}")
    if unknown := sorted(set(found) - {"question", "answer", "contexts"}):
        raise UnusableRequest(f"the key '{unknown[0]}' is not known; send {example}")
    return found["question"], contexts, found["answer"]


def describe_api(name: str, token: str | None) -> dict[str, Any]:
    """The OpenAPI document."""
    secured: dict[str, Any] = {} if token is None else {"security": [{"token": []}]}
    replies = {
        "200": {"description": "The outcome.", "content": {"application/json": {"schema": _REPLY}}},
        "400": {"description": "The request is not one; `error` says what to send."},
        **({} if token is None else {"401": {"description": "The token is missing or wrong."}}),
    }
    check = {
        "summary": "Check an answer before a user sees it.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": _REQUEST}}},
        "responses": replies,
        **secured,
    }
    components = {} if token is None else {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Checks of {name}", "version": "1"},
        "paths": {"/check": {"post": check}},
        "components": components,
    }
