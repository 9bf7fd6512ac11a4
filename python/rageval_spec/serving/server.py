"""The application of a server for a few small pages and for checks."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute


class Page(NamedTuple):
    """What a path answers."""

    content: bytes
    media_type: str = "text/plain; charset=utf-8"
    status: int = 200


def import_starlette() -> Any:
    """Starlette, which the extra `serve` brings."""
    try:
        import starlette
        import uvicorn  # noqa: F401 - both or neither
    except ImportError as error:
        message = "to serve over HTTP, install uvicorn and Starlette: pip install 'rageval-spec[serve]'"
        raise UsageError(message) from error
    return starlette


def make_app(
    pages: Mapping[str, Callable[[], Page]], routes: Sequence[BaseRoute] = (), token: str | None = None
) -> Starlette:
    """An application with a page for each path, and further routes.

    With a token, only requests that send it are answered, except at `/healthz` and `/ready`: what asks there rarely has
    one.
    """
    import_starlette()
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import Response as Answer
    from starlette.routing import Route

    def route(path: str, make: Callable[[], Page]) -> Route:
        async def show(_: Request) -> Response:
            page = await run_in_threadpool(make)
            return Answer(page.content, page.status, media_type=page.media_type)

        return Route(path, show, methods=["GET"])

    async def guard(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        given = str(request.headers.get("authorization", "")).encode()
        is_open = request.url.path in _OPEN
        if token is not None and not is_open and not hmac.compare_digest(given, f"Bearer {token}".encode()):
            told = {"error": "send the server's token: authorization: Bearer TOKEN"}
            return Answer(json.dumps(told), 401, {"WWW-Authenticate": "Bearer"}, media_type="application/json")
        return await go_on(request)

    middleware = [] if token is None else [Middleware(BaseHTTPMiddleware, dispatch=guard)]
    own = [route(path, make) for path, make in pages.items()]
    return Starlette(routes=[*own, *routes], middleware=middleware)


_OPEN = ("/healthz", "/ready")
