"""`rageval-spec validate` and `rageval-spec schema`: check a spec, and print the JSON Schema of specs.

`validate` also checks the files that a spec names, and a results folder against its manifest. The schema includes all installed plugins.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import PASSED
from rageval_spec.reading.missing_columns import write_mapping
from rageval_spec.wording import count_noun


@click.command(cls=OutputCommand)
@shared.spec_argument
def validate(spec: Path, overrides: Sequence[str]) -> int:
    """Check a spec and the files it names, without running anything; or a results folder.

    A results folder is compared with its manifest.json, which the run wrote. A file that is missing
    or was changed is an error (exit code 3).

    \b
    rageval-spec validate spec.yaml
    rageval-spec validate rageval-results
    """
    if spec.is_dir() and not overrides:
        return _check_results(spec)
    from rageval_spec.pipeline.planning import preflight

    loaded, readings = preflight.inspect(spec, overrides)
    console.complain(loaded.warnings)
    sections = {"dataset": loaded.datasets, "system": loaded.systems, "metric": loaded.metrics, "gate": loaded.gates}
    counts = ", ".join(count_noun(len(section), noun) for noun, section in sections.items())
    lines = [f"{loaded.path}: valid, {counts}"]
    for key, reading in ((key, one) for key, found in readings.items() for one in found):
        lines.append(f"{key}: {reading}")
        lines += [f"  {write_mapping(('columns',), reading.columns)}"] if reading.columns else []
        lines += [f"  kept with the questions: {', '.join(reading.others)}"] if reading.others else []
    console.show("".join(f"{make_visible(line)}\n" for line in lines))
    return PASSED


def _check_results(folder: Path) -> int:
    from rageval_spec.history.results_manifest import check_manifest

    count, others = check_manifest(folder)
    lines = [f"{folder}: valid, {count_noun(count, 'file')} with the content that the run wrote"]
    lines += [f"  not of this run: {name}" for name in others]
    console.show("".join(f"{make_visible(line)}\n" for line in lines))
    return PASSED


@click.command("schema", cls=OutputCommand)
def print_schema() -> int:
    """Print the JSON Schema of a spec.

    Editors use it to complete and check specs. It covers all installed plugins.

    \b
    rageval-spec schema > spec.schema.json
    """
    from rageval_spec.spec.json_schema import render_schema

    console.write(render_schema())
    return PASSED
