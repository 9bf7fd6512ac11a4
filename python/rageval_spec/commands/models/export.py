"""`rageval-spec models export`: write a model to a folder that other programs can read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rageval_spec.commands.models.listing import format_bytes
from rageval_spec.commands.models.named import find_model
from rageval_spec.errors import UsageError
from rageval_spec.plugin import Context
from rageval_spec.progress import ProgressDisplay

Precision = Literal["fp32", "int8"]


def export(model: str, target: Path, precision: Precision, revision: str | None = None, file: str | None = None) -> str:
    """Write a model to a folder that `use: onnx` and other programs can read. Returns the message for the user.

    Raises:
        UsageError: there is no such model, no graph can be built from it, or the folder is not empty.
        DataError: the model's files are damaged.
        RagevalError: the model cannot be downloaded, or the folder cannot be written.
    """
    from rageval_spec.inference.exports import export_model

    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise UsageError(f"{target} already exists; name a new folder")
    named = find_model(model, revision, file)
    with ProgressDisplay() as display:
        display.announce(f"export {model} as {precision}")
        graph = export_model(named.source, named.configuration, target, precision, Context(model).fingerprint)
    size = sum(path.stat().st_size for path in graph.parent.iterdir() if path.is_file())
    node = f"{{use: onnx, model: {target}}}"
    return f"wrote {graph} ({precision}, {format_bytes(size)}); to use it in a spec, write {node}\n"
