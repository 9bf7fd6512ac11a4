"""`rageval-spec plan`: the steps of an evaluation, what is stored, and what the rest would cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from rageval_spec import runner
from rageval_spec.errors import UsageError
from rageval_spec.progress import ProgressDisplay
from rageval_spec.runner import Options


def plan(
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
    options = Options(**chosen)
    if power:
        from rageval_spec.commands.power import plan_power

        return plan_power(spec, options, form, sources, sd)
    if sources or sd is not None:
        raise UsageError("--from and --sd need --power")
    with ProgressDisplay() as display:
        display.announce("read the input files")
        planned = runner.plan(spec, options)
        return planned.to_json() if form == "json" else planned.render()
