"""Collections of questions, systems that answer them, and an HTTP service in a thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl

from rageval_spec import registry
from rageval_spec.data.tables import ANSWER_COLUMNS, ASKED, Collection
from rageval_spec.plugin import Answers, Context, Progress, System, ignore_progress
from rageval_spec.plugin.budget import Budget
from rageval_spec.reading.question_files import other_columns_table
from rageval_spec.store.store import MemoryAnswers


def collection(questions: Mapping[str, str], contexts: Mapping[str, list[str] | None] | None = None) -> Collection:
    """Questions by id, and reference contexts by id if there are any."""
    queries = pl.DataFrame({"query_id": list(questions), "text": list(questions.values())})
    known = None
    if contexts is not None:
        schema: dict[str, Any] = {"query_id": pl.String, "reference_contexts": pl.List(pl.String)}
        known = pl.DataFrame([*contexts.items()], schema=schema, orient="row")
    return Collection("golden", load_queries=lambda: queries, load_references=None if known is None else lambda: known)


def questions_with_columns(rows: Sequence[Mapping[str, Any]]) -> Collection:
    """Questions with `id`, `question` and other columns."""
    asked = collection({row["id"]: row["question"] for row in rows})
    named = ((row["id"], {key: value for key, value in row.items() if key not in ("id", "question")}) for row in rows)
    columns = other_columns_table(named, sorted({key for row in rows for key in row} - {"id", "question"}))
    return replace(asked, load_columns=lambda: columns)


def build(
    word: str,
    folder: Path = Path(),
    *,
    answers: Answers | None = None,
    budget: Budget | None = None,
    progress: Progress = ignore_progress,
    at_once: int = 4,
    **keys: Any,
) -> System[Any]:
    """A system as built by a spec in `folder` with a limit of `at_once` concurrent questions."""
    plugin = registry.load("systems", word)
    context = Context(
        "tested",
        folder,
        progress=progress,
        answers=answers or MemoryAnswers(),
        budget=budget or Budget(),
        concurrency=at_once,
    )
    built: System[Any] = plugin(plugin.node_type(use=word, **keys), context)
    return built


def answers_of(system: System[Any], questions: Mapping[str, str] | Collection) -> dict[str, dict[str, Any]]:
    """The rows of a system's answers by query, without `query_id`, nulls, times and the other columns of a record."""
    asked = questions if isinstance(questions, Collection) else collection(questions)
    rows = system.answer(asked).answers.drop(ANSWER_COLUMNS, ASKED, strict=False).iter_rows(named=True)
    return {row.pop("query_id"): {key: value for key, value in row.items() if value is not None} for row in rows}


class Call:
    """The requests that a service got."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.method = handler.command
        self.path = handler.path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        length = int(handler.headers.get("Content-Length") or 0)
        self.content = handler.rfile.read(length)

    @property
    def json(self) -> Any:
        return json.loads(self.content)


Said = tuple[int, Any] | tuple[int, Any, Mapping[str, str]]
"""Status, JSON or bytes, and maybe headers."""


class Service:
    """Serve a URL; `script` gives the reply to each call."""

    def __init__(self, script: Callable[[Call], Said]) -> None:
        self.calls: list[Call] = []
        self._lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                call = Call(self)
                with service._lock:
                    service.calls.append(call)
                status, content, *more = script(call)
                body = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **(more[0] if more else {})}.items():
                    self.send_header(name, value)
                with suppress(OSError):  # the client may be gone
                    self.end_headers()
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = answer  # noqa: N815 - as http.server calls them

            def log_message(self, format: str, *args: Any) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/answer"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def questions(self) -> Sequence[str]:
        """The questions that were asked, sorted."""
        return sorted(call.json["question"] for call in self.calls)
