"""The samples that `rageval-spec init` writes: a commented spec for retrieval, one for answers, and their data."""

from __future__ import annotations

import shutil
from pathlib import Path

from rageval_spec.errors import UsageError

SPEC, ANSWERS = "spec.yaml", "answers.yaml"
DATA = "data"
SCHEMA = "spec.schema.json"


def write_sample(folder: Path, schema: str, *, force: bool = False) -> Path:
    """Write both specs, their data and the JSON Schema for editors. Returns the path of the first spec.

    Raises:
        UsageError: one of the files exists and `force` is false, or the folder cannot be written.
    """
    there = [name for name in (SPEC, ANSWERS, DATA, SCHEMA) if (folder / name).exists()]
    if there and not force:
        raise UsageError(f"{folder / there[0]} already exists; name another folder, or overwrite it with --force")
    samples = Path(__file__).parent / "samples"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for sample, spec in (("retrieval", SPEC), ("answers", ANSWERS)):
            source = samples / sample
            shutil.copytree(source, folder / DATA, ignore=shutil.ignore_patterns(SPEC), dirs_exist_ok=True)
            shutil.copyfile(source / SPEC, folder / spec)
        (folder / SCHEMA).write_text(schema, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror or error}") from error
    return folder / SPEC
