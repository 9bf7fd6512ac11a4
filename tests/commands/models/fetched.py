"""Models in a temporary Hugging Face cache, and the command that reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from rageval_spec.cli import cli

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ENCODER = {"model_type": "bert", "architectures": ["BertModel"]}


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["models", *map(str, arguments)])


def write_fetched(name: str, *files: str, folder: Path, config: dict[str, Any] = ENCODER) -> Path:
    """Write a model in the layout of huggingface_hub's cache."""
    repository = folder / "hub" / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / ".no_exist" / COMMIT).mkdir(parents=True)
    (repository / ".no_exist" / COMMIT / "modules.json").touch()
    for file in files:
        (snapshot / file).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / file).write_bytes(b"x" * 1_500_000)
    (snapshot / "config.json").write_text(json.dumps(config))
    return snapshot
