"""The golden spans of applications, and what the import of them gives as comparable rows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
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


def _compare(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "question": row["question"],
        "answer": row.get("answer"),
        "contexts": [one.get("text") for one in row.get("contexts") or ()],
        "input_tokens": row.get("input_tokens"),
        "output_tokens": row.get("output_tokens"),
        "failed": row.get("error") is not None,
        "cost": row.get("cost"),
    }
