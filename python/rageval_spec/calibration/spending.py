"""What a judge costs: dollars and seconds a sample."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.plugin import ChatModel

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.history.recorded_spec import RecordedSpec


@dataclass(frozen=True, slots=True)
class Spending:
    """What a judge took for each sample that it scored.

    Attributes:
        cost: US dollars, whenever they were paid; 0 for a judge that asks no chat model, None if it is not known.
        calls: calls to chat models; None if it is not known.
        seconds: how long it took; None if it did not run now.
    """

    cost: float | None = None
    calls: float | None = None
    seconds: float | None = None


def find_spending(evaluation: Evaluation, recorded: RecordedSpec, metric: str) -> Spending:
    """What the judge of a metric took, from the results.

    It is not known if another metric asks the same chat model, because the results count the calls of each model.
    """
    samples = evaluation.values.filter(metric=metric).drop_nulls("value").height
    models = list_chat_models(recorded, metric)
    if not models:
        return Spending(0.0, 0.0)
    others = {name for other in recorded.metrics if other != metric for name in list_chat_models(recorded, other)}
    found = [evaluation.judging.get(name) for name in models]
    if not samples or others & {*models} or not all(found):
        return Spending()
    costs = [one.cost for one in found if one is not None and one.cost is not None]
    calls = sum(one.calls for one in found if one is not None)
    return Spending(sum(costs) / samples if len(costs) == len(found) else None, calls / samples)


def list_chat_models(recorded: RecordedSpec, metric: str) -> Collection[str]:
    """The names of the chat models behind a metric."""
    node = recorded.metrics[metric].node
    models = (name for section, name in recorded.list_used(node) if section == "models")
    return [name for name in models if isinstance(recorded.models.get(name), ChatModel)]
