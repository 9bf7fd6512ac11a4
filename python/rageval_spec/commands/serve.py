"""`rageval-spec serve`: checks answers over HTTP before users see them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from threading import Event

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.errors import PASSED, UsageError

USUAL_PORT = 8008


@click.command()
@shared.spec_argument
@click.option(
    "--listen", default=f"127.0.0.1:{USUAL_PORT}", show_default=True, metavar="ADDRESS",
    help="Where to listen; in a container 0.0.0.0.",
)  # fmt: skip
@click.option("--token-env", metavar="VARIABLE", help="The environment variable with a token that requests must send.")
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True, metavar="SECONDS",
    help="The longest time for a check; a longer one is answered with 503.",
)  # fmt: skip
def serve(spec: Path, overrides: Iterable[str], listen: str, token_env: str | None, timeout: float) -> int:
    """Check answers over HTTP before users see them, until Ctrl-C.

    `POST /check` with a question, its contexts and an answer returns `accept`, `person` or `reject`, by the metrics and
    gates of the spec. `/openapi.json` describes it. For TLS, put a proxy in front.

    \b
    rageval-spec serve spec.yaml
    curl -d '{"question": "...", "contexts": ["..."], "answer": "..."}' http://127.0.0.1:8008/check
    """
    from rageval_spec.endpoints.http_server import Server, is_local, read_token, split_address
    from rageval_spec.pipeline.planning.spec_plugins import build_parts
    from rageval_spec.plugin import ChatModel
    from rageval_spec.serving.answer_check import AnswerCheck
    from rageval_spec.serving.server import CheckLimits, make_check_app
    from rageval_spec.signals import stopping
    from rageval_spec.spec import load

    token = read_token(token_env)
    try:
        host, port = split_address(listen, USUAL_PORT)
    except ValueError as error:
        raise UsageError(f"--listen {error}") from None
    loaded = load(spec, overrides=list(overrides))
    parts = build_parts(loaded, budget=loaded.limits.budget(), tell=console.tell)
    check = AnswerCheck.of(loaded, parts)
    for remark in check.remarks:
        console.tell(f"warning: {remark}")
    for model in parts.asked_models.values():
        model.prepare()
    if not check.asks_chat:
        check.check("", [""], "Nobody waits for this one: it loads the models.")
    app = make_check_app(check, loaded.name, token, CheckLimits(loaded.limits.concurrency, seconds=timeout))
    stop = Event()
    with stopping(stop.set):
        server = Server(app, host, port)
        if token is None and not is_local(host):
            told = "can send answers; give clients a token with --token-env VARIABLE"
            console.tell(f"warning: everybody who reaches {host} {told}")
        console.tell(f"checking answers with {', '.join(check.metrics)} at {server.url}/check; Ctrl-C ends this")
        try:
            while not stop.wait(0.2):  # once polars is loaded, a signal no longer ends a wait without a limit
                pass
        finally:
            server.close()
            for model in parts.models.values():
                if isinstance(model, ChatModel):
                    model.stop()
    return PASSED
