"""The command `drift`: its options, and which part of the work they ask for. It imports little more than click."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared


@click.command("drift")
@click.argument("anchors", type=click.Path(path_type=Path))
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--metric", metavar="METRIC", help="The metric whose judge to ask.  [default: the frozen one]")
@click.option(
    "--alpha", type=click.FloatRange(0, 0.5, min_open=True), default=0.05, show_default=True,
    help="The probability of calling drift what is chance.",
)  # fmt: skip
@click.option(
    "--reversed", "is_reversed", is_flag=True,
    help="Compare with the reverse order instead: of contexts, and of the choices and examples of the prompt.",
)  # fmt: skip
@shared.set_option
@shared.form_option
def drift(anchors: Path, spec: Path, is_reversed: bool, **options: Any) -> int:
    """Ask a judge again about frozen answers, to see if it changed.

    ANCHORS is a file that `calibrate --freeze` wrote. Stored replies are not used. The exit code is 1 if the judge has
    changed, or with --reversed, if the order changes what it says; and 3 if it gave a value to fewer than half of the
    answers.

    \b
    rageval-spec calibrate --labels labels.csv --freeze anchors.json
    rageval-spec drift anchors.json spec.yaml
    rageval-spec drift anchors.json spec.yaml --reversed
    """
    from rageval_spec.commands.drift.frozen_answers import show_drift, show_reversed

    found = (show_reversed if is_reversed else show_drift)(anchors, spec, **options)
    console.write(found.content)
    return found.exit_code
