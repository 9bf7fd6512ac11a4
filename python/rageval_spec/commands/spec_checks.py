"""`rageval-spec validate`, `upgrade` and `schema`: check a spec, rewrite its former keys, print the JSON Schema.

`validate` also checks the files that a spec names, and a results folder against its manifest. The schema includes all
installed plugins.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.diagnostics import Diagnostic, SpecError, make_visible
from rageval_spec.errors import GATE_FAILED, PASSED, SPEC_WRONG, DataError, RagevalError
from rageval_spec.reading.missing_columns import write_mapping
from rageval_spec.wording import count_noun

_several_specs = click.argument("specs", nargs=-1, required=True, metavar="SPEC...", type=click.Path(path_type=Path))


@click.command(cls=OutputCommand)
@_several_specs
@shared.set_option
def validate(specs: Sequence[Path], overrides: Sequence[str]) -> int:
    """Check a spec and the files it names, without running anything.

    Several specs are checked one after another. A results folder is compared with the manifest.json
    that its run wrote: a file that is missing or was changed is an error (exit code 3).

    \b
    rageval-spec validate spec.yaml
    rageval-spec validate rageval-results
    """
    faults: list[Diagnostic] = []
    for spec in specs:
        try:
            lines = _check_results(spec) if spec.is_dir() and not overrides else _check_spec(spec, overrides)
            console.show("".join(f"{make_visible(line)}\n" for line in lines))
        except SpecError as error:
            faults += error.diagnostics
    if faults:
        raise SpecError(faults)
    return PASSED


def _check_spec(spec: Path, overrides: Sequence[str]) -> list[str]:
    from rageval_spec.pipeline.planning import preflight

    loaded, readings = preflight.inspect(spec, overrides)
    console.complain(loaded.warnings)
    sections = {"dataset": loaded.datasets, "system": loaded.systems, "metric": loaded.metrics, "gate": loaded.gates}
    counts = ", ".join(count_noun(len(section), noun) for noun, section in sections.items())
    lines = [f"{loaded.path}: valid, {counts}"]
    if loaded.axes:
        combinations = count_noun(math.prod(map(len, loaded.axes.values())), "combination")
        lines.append(f"axes: {combinations}; a sweep writes sweep.html and sweep.json, and none of `reports:`")
    for key, reading in ((key, one) for key, found in readings.items() for one in found):
        lines.append(f"{key}: {reading}")
        lines += [f"  {write_mapping(('columns',), reading.columns)}"] if reading.columns else []
        lines += [f"  kept with the questions: {', '.join(reading.others)}"] if reading.others else []
    return lines


def _check_results(folder: Path) -> list[str]:
    from rageval_spec.history.results_manifest import check_manifest
    from rageval_spec.pipeline.execution.shard_files import MANIFEST, read_manifest

    if not (folder / "manifest.json").exists() and (shard := next(folder.rglob(MANIFEST), None)):
        merge = f"rageval-spec merge {shlex.quote(read_manifest(shard.parent).spec)} {shlex.quote(str(folder))}"
        raise DataError(f"{folder} has a part of an evaluation; put its parts together, and validate that: {merge}")
    count, others = check_manifest(folder)
    valid = f"{folder}: valid, {count_noun(count, 'file')} with the content that the run wrote"
    return [valid, *(f"  not of this run: {name}" for name in others)]


@click.command(cls=OutputCommand)
@_several_specs
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if there is something to rename.")
def upgrade(specs: Sequence[Path], check: bool) -> int:
    """Rewrite keys of a spec that have another name today, in place.

    Shows what it changes. Comments, quotes and the layout stay. A key that cannot be rewritten safely
    is named, with what to write instead, and the exit code is 1. A file that cannot be read or written
    is named, the others are rewritten all the same, and the exit code is 2.

    \b
    rageval-spec upgrade spec.yaml
    rageval-spec upgrade evals/*.yaml --check
    """
    from rageval_spec.spec.upgrading import find_upgrade, write_upgrade

    codes = {PASSED}
    for spec in specs:
        try:
            found = find_upgrade(spec)
            if found.renamed and not check:
                write_upgrade(found)
        except RagevalError as error:
            console.report(error, str(error))
            codes.add(SPEC_WRONG)
            continue
        console.show("".join(f"{make_visible(line)}\n" for line in found.diff))
        console.complain([key.warn(by_hand=True) for key in found.by_hand])
        codes.add(GATE_FAILED if found.by_hand or (check and found.renamed) else PASSED)
        if found.renamed and not check:
            console.show(f"{make_visible(str(spec))}: renamed {count_noun(len(found.renamed), 'key')}\n")
        elif not found.renamed and not found.by_hand:
            console.show(f"{make_visible(str(spec))}: nothing to rename\n")
    return max(codes)


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
