"""Prepares what must exist before an evaluation is planned: the files of models, and questions that a model writes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rageval_spec import signals
from rageval_spec.pipeline.parts import Parts, stop_calls
from rageval_spec.plugin.names import names_in

if TYPE_CHECKING:
    from rageval_spec.plugin.budget import Budget
    from rageval_spec.progress import ProgressDisplay


def prepare_models(parts: Parts, display: ProgressDisplay) -> None:
    """Download missing models before the plan is made, because their files are part of the keys.

    Raises:
        RagevalError: a model cannot be downloaded.
    """
    for name, model in parts.asked_models.items():
        display.announce(f"find the model {name}")
        model.prepare()


def prepare_datasets(parts: Parts, display: ProgressDisplay, budget: Budget, *, keeps_replies: bool) -> None:
    """Make what datasets lack before the plan is made, because their questions are part of the keys.

    Raises:
        RagevalError: questions cannot be made, or only some of them.
        KeyboardInterrupt: it was interrupted; it says what was spent.
    """
    with stop_calls(parts), signals.explained(partial(explain_interrupt, parts, budget, keeps_replies=keeps_replies)):
        for name, dataset in parts.datasets.items():
            if names_in(dataset.node, "models"):
                display.announce(f"make the questions of {name}")
            dataset.prepare()


def explain_interrupt(parts: Parts, budget: Budget, *, keeps_replies: bool) -> str:
    """What was spent and how to continue; "" if nothing is asked whose replies are stored."""
    if not budget.calls and not parts.asked_models:
        return ""
    rest = "run again to continue from what is stored" if keeps_replies else "nothing is stored (--no-store)"
    return "; ".join(filter(None, (budget.describe(), rest)))
