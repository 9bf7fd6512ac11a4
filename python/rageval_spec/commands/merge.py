"""`rageval-spec merge`: puts the shards that `run --shard` made together to one evaluation."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

import click

from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.commands.results_argument import is_spec
from rageval_spec.commands.run import annotations_option, evaluate, output_options, quiet_option
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import UsageError
from rageval_spec.plugin.report import RESULTS_FOLDER


@click.command(cls=OutputCommand)
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[SPEC] FOLDERS...")
@shared.set_option
@shared.store_options
@output_options
@quiet_option
@annotations_option
def merge(places: tuple[Path, ...], annotations: Any, **options: Any) -> int:
    """Put the shards of an evaluation together, and check its gates.

    FOLDERS are the folders that `run --shard` wrote, or folders that contain them, in any order. The files that SPEC
    names must be on this machine. Without SPEC, merge reads the spec that the shards name.

    merge gives the results, reports, history records and exit codes that `run` gives without --shard. Use the same
    --set options as for the shards. Do not repeat --limit and --only: merge takes them from the shards.

    \b
    rageval-spec merge spec.yaml results/*
    rageval-spec merge spec.yaml rageval-results --save-as main
    """
    from rageval_spec.runner import Options

    specs, folders = [one for one in places if is_spec(str(one))], [one for one in places if not is_spec(str(one))]
    if len(specs) > 1:
        told = f"{specs[0]} and {specs[1]} are two specs, and shards are of one"
        raise UsageError(f"{told}; name it: {_write_command(specs[0], folders)}")
    if not folders:
        raise UsageError(
            f"no folder of a shard is named; write: {_write_command(specs[0] if specs else Path('spec.yaml'), [])}"
        )
    spec = specs[0] if specs else _find_spec(folders)
    return evaluate(spec, Options(**options, shards=folders), annotations)


def _find_spec(folders: list[Path]) -> Path:
    """The spec that the shards name: a relative path that does not lead into one of the folders, which are not trusted.

    Raises:
        UsageError: there is no such file.
    """
    from rageval_spec.pipeline.execution.found_shards import find_shards

    named = find_shards(folders)[0].manifest.spec
    path = Path(named)
    is_inside = any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
    if path.is_absolute() or ".." in path.parts or is_inside or not is_spec(named):
        told = "is not a file here" if not path.exists() else "is outside of this folder, or came with the shards"
        raise UsageError(
            f"the shards do not say where the spec is on this machine: {make_visible(named)} {told}; name it: "
            f"{_write_command(Path(path.name), folders)}"
        )
    return path


def _write_command(spec: Path, folders: list[Path]) -> str:
    return f"rageval-spec merge {quote(str(spec))} {' '.join(quote(str(one)) for one in folders) or RESULTS_FOLDER}"
