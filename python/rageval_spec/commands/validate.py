"""`rageval-spec validate`: check a spec and the files it names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rageval_spec.commands import console
from rageval_spec.pipeline import preflight
from rageval_spec.wording import count_noun


def validate(spec: Path, overrides: Sequence[str]) -> str:
    """One line that counts what the spec declares. Its warnings go to standard error.

    Raises:
        SpecError: the spec is wrong; it holds all diagnostics.
    """
    loaded = preflight.validate(spec, overrides)
    console.complain(loaded.warnings)
    sections = {"dataset": loaded.datasets, "system": loaded.systems, "metric": loaded.metrics, "gate": loaded.gates}
    counts = ", ".join(count_noun(len(section), noun) for noun, section in sections.items())
    return f"{loaded.path}: valid, {counts}\n"
