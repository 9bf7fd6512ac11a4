"""Renders a sheet as the review page: its data in parts, its style and its script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rageval_spec.drawing.html_shell import build_page, join_scripts, pack, read_asset

BLOCK = 50
"""The tasks in a part of the data. The page unpacks a part when a reader comes to its tasks."""
_ASSETS = Path(__file__).parent / "assets"
_SHARED_STYLES = ("page.css", "texts.css")
_SHARED_SCRIPTS = ("elements.js", "numbers.js", "parts.js", "marks.js", "theme.js", "keyboard.js")
_SCRIPTS = (
    "sheet.js", "keeping.js", "entries.js", "work.js", "files.js", "task.js", "form.js", "nuggets.js", "browse.js",
    "welcome.js", "person.js", "review.js",
)  # fmt: skip
_LISTED = ("dataset", "system", "query_id", "question", "answer_digest", "reason", "probability")
"""What the page needs of all tasks at once: for its list, its search, and the file that it saves."""


def render_page(payload: Mapping[str, Any], entries: str | None = None, own_style: str = "") -> bytes:
    """The page of a sheet, as `to_payload` gives it, in one file that opens without a server.

    `entries` is a script that sends labels elsewhere, in place of `entries.js`, to the server that the page is from.
    """
    parts = [(name, pack(_dump(content))) for name, content in split_sheet(payload)]
    style = "".join(("\n", *map(read_asset, _SHARED_STYLES), _read_asset("review.css"), own_style))
    own = (_read_asset(name) if entries is None or name != "entries.js" else entries for name in _SCRIPTS)
    script = join_scripts([*map(read_asset, _SHARED_SCRIPTS), *own])
    return build_page(f"{payload['name']}: review", parts, style, script, sends=entries is not None)


def split_sheet(payload: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The parts of the page's data: `head`, and `tasks-0`, `tasks-1` and so on with `BLOCK` tasks each."""
    tasks: Sequence[Mapping[str, Any]] = payload["tasks"]
    listed = [{name: task[name] for name in _LISTED} | {"slots": _list_slots(task, payload)} for task in tasks]
    yield "head", {**payload, "tasks": listed, "block": BLOCK}
    for number, start in enumerate(range(0, len(tasks), BLOCK)):
        block = tasks[start : start + BLOCK]
        yield f"tasks-{number}", [{name: task[name] for name in task if name not in _LISTED} for task in block]


def _list_slots(task: Mapping[str, Any], payload: Mapping[str, Any]) -> list[tuple[int, int | None]]:
    """What is asked about a task: the number of a criterion, and that of a claim if it asks claim by claim."""
    slots: list[tuple[int, int | None]] = []
    for number, criterion in enumerate(payload["criteria"]):
        if criterion["kind"] == "claims":
            slots += [(number, claim["number"]) for claim in task["claims"] if claim["metric"] == criterion["name"]]
        else:
            slots.append((number, None))
    return slots


def _dump(content: object) -> bytes:
    """Compact JSON. Half a surrogate pair stays as it is, so that a label names the same query as its sheet."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _read_asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
