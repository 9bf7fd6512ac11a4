"""The sample evaluation that `rageval-spec init` writes: a commented spec, and data on which it runs at once."""

from __future__ import annotations

import shutil
from pathlib import Path

from rageval_spec.errors import UsageError

SPEC = "spec.yaml"
DATA = "data"
SCHEMA = "spec.schema.json"


def write_sample(folder: Path, schema: str, *, force: bool = False) -> Path:
    """Write spec, data and the JSON Schema that editors complete from; the path of the spec.

    Raises:
        UsageError: one of the files is there already and `force` is false, or the folder cannot be written.
    """
    there = [name for name in (SPEC, DATA, SCHEMA) if (folder / name).exists()]
    if there and not force:
        raise UsageError(f"{folder / there[0]} is there already; name another folder, or overwrite it with --force")
    source = Path(__file__).parent / "samples" / "retrieval"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, folder / DATA, ignore=shutil.ignore_patterns(SPEC), dirs_exist_ok=True)
        shutil.copyfile(source / SPEC, folder / SPEC)
        (folder / SCHEMA).write_text(schema, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return folder / SPEC
