"""`rageval-spec validate` and `rageval-spec schema`: check a spec, and print the JSON Schema of specs.

`validate` also checks the files that a spec names. The schema includes all installed plugins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import PASSED
from rageval_spec.reading.missing_columns import write_mapping
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.plugin.plugin import FileReading


def validate_spec(spec: Path, overrides: Sequence[str]) -> str:
    """A line that counts what the spec declares, and how each file with columns is read. Warnings go to stderr.

    Raises:
        SpecError: the spec is wrong; it holds all diagnostics.
    """
    from rageval_spec.pipeline.planning import preflight

    loaded, readings = preflight.inspect(spec, overrides)
    console.complain(loaded.warnings)
    sections = {"dataset": loaded.datasets, "system": loaded.systems, "metric": loaded.metrics, "gate": loaded.gates}
    counts = ", ".join(count_noun(len(section), noun) for noun, section in sections.items())
    shown = (line for key, found in readings.items() for one in found for line in _show_reading(key, one))
    return "".join(f"{make_visible(line)}\n" for line in (f"{loaded.path}: valid, {counts}", *shown))


def _show_reading(key: str, reading: FileReading) -> Iterator[str]:
    yield f"{key}: {reading}"
    if reading.columns:
        yield f"  {write_mapping(('columns',), reading.columns)}"
    if reading.others:
        yield f"  kept with the questions: {', '.join(reading.others)}"


@click.command(cls=OutputCommand)
@shared.spec_argument
def validate(spec: Path, overrides: Sequence[str]) -> int:
    """Check a spec and the files it names, without running anything.

    \b
    rageval-spec validate spec.yaml
    """
    console.show(validate_spec(spec, overrides))
    return PASSED


def render_schema() -> str:
    """The JSON Schema as indented JSON that ends with a newline."""
    from rageval_spec.spec import schema

    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


@click.command("schema", cls=OutputCommand)
def print_schema() -> int:
    """Print the JSON Schema of a spec.

    Editors use it to complete and check specs. It covers all installed plugins.

    \b
    rageval-spec schema > spec.schema.json
    """
    console.write(render_schema())
    return PASSED
