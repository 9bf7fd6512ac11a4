"""`rageval-spec merge`: puts the shards that `run --shard` made together to one evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.commands.results_argument import is_spec
from rageval_spec.commands.run import annotations_option, evaluate, output_options, quiet_option
from rageval_spec.errors import UsageError

_EXAMPLE = "rageval-spec merge spec.yaml results/*"


@click.command(cls=OutputCommand)
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[SPEC] FOLDERS...")
@shared.set_option
@shared.store_options
@output_options
@quiet_option
@annotations_option
def merge(places: tuple[Path, ...], annotations: Any, **options: Any) -> int:
    """Put the shards of an evaluation together, and check its gates.

    FOLDERS are those that `run --shard` wrote, or folders that they are in, in any order. The results are those of
    `run` without --shard, and so are the reports, the history and the exit codes. The files that the spec names must
    be here. Without SPEC, the shards say which it is. Write every --set as for the shards; --limit and --only are
    those of the shards.

    \b
    rageval-spec merge spec.yaml results/*
    rageval-spec merge spec.yaml rageval-results --save-as main
    """
    from rageval_spec.runner import Options

    specs, folders = [one for one in places if is_spec(str(one))], [one for one in places if not is_spec(str(one))]
    if len(specs) > 1:
        raise UsageError(f"{specs[0]} and {specs[1]} are two specs; shards of one spec are put together: {_EXAMPLE}")
    if not folders:
        raise UsageError(f"name the folders of the shards: {_EXAMPLE}")
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
        raise UsageError(f"the spec of the shards, {named}, is not here; name it: {_EXAMPLE}")
    return path
