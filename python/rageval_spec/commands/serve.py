"""`rageval-spec serve`: checks answers over HTTP before users see them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from threading import Event

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.errors import PASSED, UsageError

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command()
@shared.spec_argument
@click.option("--listen", default="127.0.0.1:8008", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option("--token-env", metavar="VARIABLE", help="The environment variable with a token that requests must send.")
def serve(spec: Path, overrides: Iterable[str], listen: str, token_env: str | None) -> int:
    """Check answers over HTTP before users see them, until Ctrl-C.

    `POST /check` with a question, its contexts and an answer returns `accept`, `person` or `reject`, by the metrics and
    gates of the spec. `/openapi.json` describes it. For TLS, put a proxy in front.

    \b
    rageval-spec serve spec.yaml
    curl -d '{"question": "...", "contexts": ["..."], "answer": "..."}' http://127.0.0.1:8008/check
    """
    from rageval_spec.endpoints.http_server import Server
    from rageval_spec.exchange.otel.source import split_address
    from rageval_spec.pipeline.planning.spec_plugins import build_parts
    from rageval_spec.serving.answer_check import AnswerCheck, make_check_app
    from rageval_spec.signals import stopping
    from rageval_spec.spec import load

    token = None if token_env is None else os.environ.get(token_env, "").strip()
    if token == "":
        raise UsageError(f"--token-env {token_env}: the variable is not set; set it to the token that clients have")
    try:
        host, port = split_address(listen)
    except ValueError as error:
        raise UsageError(f"--listen {error}") from None
    loaded = load(spec, overrides=list(overrides))
    check = AnswerCheck.of(loaded, build_parts(loaded, budget=loaded.limits.budget()))
    server, stop = Server(make_check_app(check, loaded.name, token), host, port), Event()
    if token is None and host not in _LOOPBACK:
        console.tell(f"everybody who reaches {host} can send answers; give clients a token with --token-env VARIABLE")
    console.tell(f"checking answers with {', '.join(check.metrics)} at {server.url}/check; Ctrl-C ends this")
    try:
        with stopping(stop.set):
            stop.wait()
    finally:
        server.close()
    return PASSED
