"""A monitor of a spec that has judged a file of traces, for the tests of what people look at."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rageval_spec.monitoring.assembly import open_monitor
from rageval_spec.spec import load
from rageval_spec.spec.blocks.spec_node import Spec

NOON = 1_764_072_000.0
"""2025-11-25 12:00 UTC."""
GOOD = "You can return shoes within thirty days."
BAD = "Elephants never forget the moon landing."
SOURCE = "You can return shoes within thirty days if you have the receipt."
SPEC = """version: 1
name: bot
systems: {live: {use: file, path: traces.jsonl, follow: true}}
metrics: [{use: faithfulness, judge: overlap}]
monitor:
  settle: 1s
  alerts: [{metric: faithfulness, warning: 0.8, critical: 0.6, window: hour}, coverage]
"""


def write_traces(folder: Path, *rows: dict[str, Any]) -> None:
    """Add traces to the file that the monitor follows; what a row does not say is as usual."""
    with (folder / "traces.jsonl").open("a") as stream:
        for number, row in enumerate(rows):
            began = datetime.fromtimestamp(row.pop("at", NOON), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            name = row.get("id", f"t{number}")
            whole = {
                "id": name, "question": f"Can I return shoes, {name}?", "answer": GOOD, "contexts": [SOURCE],
                "started": began, "trace": {"tool": "file", "trace_id": name}, **row,
            }  # fmt: skip
            stream.write(json.dumps(whole) + "\n")


def load_spec(folder: Path, more: str = "", spec: str = SPEC) -> Spec:
    path = folder / "spec.yaml"
    path.write_text(spec + more)
    return load(path)


def judge(spec: Spec, now: float = NOON + 3600) -> None:
    """Fetch the traces, and judge them once they have settled."""
    for moment in (now, now + 60):
        with open_monitor(spec, lambda moment=moment: moment) as loop:  # type: ignore[misc]
            loop.run_once()
