"""`rageval-spec run`: compute an evaluation, show its reports, return its exit code."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.annotations import annotate, annotate_diagnostics, stop_commands
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.front import Command
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import GATE_FAILED, RagevalWarning

if TYPE_CHECKING:
    from rageval_spec.runner import Options, Outcome


def run_spec(spec: Path, options: Options, annotations: Literal["github"] | None = None) -> int:
    """Evaluate and report. With `options.quiet`, write only files, and print only errors and warnings.

    With `annotations`, the code host whose job this is also shows the gates that did not pass, or what is wrong with
    the spec, at their lines.

    Returns:
        The exit code: 0, 1 if a gate failed, 3 if something broke, 4 if nothing could be scored.
    """
    if annotations is None:
        return _run(spec, options).exit_code
    try:
        with stop_commands():
            outcome = _run(spec, options)
    except SpecError as error:
        console.write(annotate_diagnostics(error.diagnostics))
        raise
    console.write(annotate(outcome.evaluation, outcome.origin))
    return outcome.exit_code


def _run(spec: Path, options: Options) -> Outcome:
    """Evaluate, and show everything that a person reads."""
    from rageval_spec import runner

    warnings.simplefilter("always", RagevalWarning)
    outcome = runner.run(spec, options)
    console.complain(outcome.warnings)
    if not options.quiet:
        _show(outcome, options)
    for failure in outcome.failures:
        console.report(failure.error, str(failure))
    if outcome.unrecorded is not None:
        console.tell(f"{PROGRAM}: warning: {outcome.unrecorded}")
    for error in outcome.lost_reports:
        console.report(error, str(error))
    if outcome.complaint and (options.quiet or outcome.exit_code != GATE_FAILED):
        console.tell(f"{PROGRAM}: {outcome.complaint}")
    return outcome


def _show(outcome: Outcome, options: Options) -> None:
    from rageval_spec.history.results_folder import ALL_FILES

    for shown in outcome.shown:
        console.write(shown)
    if outcome.folder is not None:
        console.tell(f"wrote the results to {outcome.folder}")
    for path in outcome.written:
        if path.parent != outcome.folder or path.name not in ALL_FILES:
            console.tell(f"wrote {path}")
    if outcome.spent.calls:
        console.tell(outcome.spent.describe())
    for asked in outcome.asked:
        console.tell(f"{asked.model}: {asked}")
    if (advice := outcome.spent.advise(is_finished=outcome.is_finished)) and not options.no_store:
        console.tell(advice)


@click.command(cls=Command)
@shared.spec_argument
@shared.selection_options
@shared.store_options
@shared.output_options
@shared.retry_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no report on the terminal.")
@shared.annotations_option
def run(spec: Path, annotations: Any, **options: Any) -> int:
    """Run an evaluation and check its gates.

    \b
    rageval-spec run spec.yaml
    rageval-spec run spec.yaml --limit 20 --only bm25 --set ranking.ties=input -o results
    """
    from rageval_spec.runner import Options

    return run_spec(spec, Options(**options), annotations)
