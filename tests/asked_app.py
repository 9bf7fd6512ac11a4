"""A Python application that a spec asks, and that keeps a list of what it was asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from rageval_spec.runner import Options, RunOutcome, run


class AskedApp:
    """The application, a file of `count` questions, and a spec that asks them.

    The application writes each question into `asked.log`, and answers with the text in `says.log`.
    """

    def __init__(self, folder: Path, module: str, code: str, count: int) -> None:
        self.folder, self.block = folder, {"use": "python", "function": f"{module}:answer", "concurrency": 1}
        rows = [{"query_id": f"q{row}", "question": f"Is it {row}?", "reference": "yes"} for row in range(count)]
        self.write(f"{module}.py", code)
        self.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        self.say("yes")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def say(self, text: str) -> None:
        self.write("says.log", text)

    @property
    def asked(self) -> list[str]:
        """The questions that were asked since the last read, sorted."""
        log = self.folder / "asked.log"
        asked = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(asked)

    def write_spec(self, **sections: Any) -> Path:
        spec = {
            "version": 1,
            "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
            "systems": {"app": self.block},
            "metrics": ["exact_match"],
            "reports": ["json"],
            **sections,
        }
        self.write("spec.yaml", yaml.safe_dump(spec))
        return self.folder / "spec.yaml"

    def run(self, options: dict[str, Any] | None = None, **sections: Any) -> RunOutcome:
        return run(self.write_spec(**sections), Options(output=self.folder / "out", **(options or {})))
