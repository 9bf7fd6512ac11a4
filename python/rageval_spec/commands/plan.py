"""`rageval-spec plan`: the steps of an evaluation, what is stored, and what the rest would cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.front import Command
from rageval_spec.commands.power import plan_power
from rageval_spec.errors import PASSED, UsageError
from rageval_spec.progress import ProgressDisplay


def show_plan(
    spec: Path,
    form: Literal["text", "json"],
    *,
    power: bool = False,
    sources: Sequence[str] = (),
    sd: float | None = None,
    **chosen: Any,
) -> str:
    """The plan as text or JSON; with `power`, the drops that it could show. Nothing is computed.

    `chosen` are the options of the evaluation.

    Raises:
        UsageError: `sources` or `sd` is given without `power`.
    """
    from rageval_spec import runner
    from rageval_spec.runner import Options

    options = Options(**chosen)
    if power:
        return plan_power(spec, options, form, sources, sd)
    if sources or sd is not None:
        raise UsageError("--from and --sd need --power")
    with ProgressDisplay() as display:
        display.announce("read the input files")
        planned = runner.plan(spec, options)
        return planned.to_json() if form == "json" else planned.render()


@click.command(cls=Command)
@shared.spec_argument
@shared.selection_options
@shared.store_options
@shared.retry_option
@shared.power_options
@shared.form_option
def plan(spec: Path, form: Any, **options: Any) -> int:
    """Show the steps of an evaluation, which of them are stored, and the calls, tokens and cost of the rest.

    The key of a step is a hash of everything its result depends on, so two plans can be compared with diff.

    \b
    rageval-spec plan spec.yaml
    rageval-spec plan spec.yaml --power --from main
    """
    console.write_form(show_plan(spec, form, **options), form)
    return PASSED
