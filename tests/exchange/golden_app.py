"""The golden spans of applications, and what the import of them gives as comparable rows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.command_line import invoke
from tests.exchange.mlflow.server import MlflowServer

FOLDER = Path(__file__).parent / "golden_apps"


def load_expected(app: str) -> dict[str, Any]:
    """The tool that reads it, the versions of the packages, and the rows: what is absent from a row is not recorded."""
    expected: dict[str, Any] = json.loads((FOLDER / f"{app}.json").read_text(encoding="utf-8"))
    return expected


def import_app(app: str, folder: Path, set_environment: Callable[[str, str], Any]) -> list[dict[str, Any]]:
    """The rows of an application as the command `import` reads them, oldest first."""
    spans, output = FOLDER / f"{app}.spans.json.gz", folder / f"{app}.jsonl"
    if load_expected(app)["tool"] == "otel":
        done = invoke("import", "otel", spans, "-o", output)
    else:
        server = MlflowServer()
        server.traces = json.loads(gzip.decompress(spans.read_bytes()))
        try:
            set_environment("MLFLOW_TRACKING_URI", server.url)
            done = invoke("import", "mlflow", "--experiment", "support", "-o", output)
        finally:
            server.close()
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    return [_compare(row) for row in sorted(found, key=lambda row: str(row.get("started")))]


def match_rows(
    rows: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]
) -> list[tuple[dict[str, Any] | None, dict[str, Any]]]:
    """Each expected row with the one that was read: that with its question, else the one at its place, else None."""
    left = [*rows]
    found: list[dict[str, Any] | None] = []
    for wanted in expected:
        row = next((one for one in left if one["question"] == wanted["question"]), None)
        found.append(row)
        if row is not None:
            left.remove(row)
    fallback = iter(left)
    return [(row or next(fallback, None), wanted) for row, wanted in zip(found, expected, strict=True)]


def _compare(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "question": row["question"],
        "answer": row.get("answer"),
        "contexts": [one.get("text") for one in row.get("contexts") or ()],
        "input_tokens": row.get("input_tokens"),
        "output_tokens": row.get("output_tokens"),
        "failed": row.get("error") is not None,
        "cost": None if row.get("cost") is None else round(row["cost"], 12),
    }
