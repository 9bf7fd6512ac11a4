"""Which judges of an evaluation asked the model that wrote the answers, or one of its family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rageval_spec.data.model_names import Kinship, compare_models
from rageval_spec.history.recorded_spec import RecordedSpec, read_recorded_spec

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


def find_generators(evaluation: Evaluation) -> dict[str, str]:
    """What the model that wrote a system's answers is called, by system, where the spec named it."""
    recorded = read_recorded_spec(evaluation)
    systems = evaluation.spec.get("systems", {})
    named = {name: str(node["generator"]) for name, node in systems.items() if node.get("generator")}
    return {name: _name_model(recorded, generator) for name, generator in named.items() if name in evaluation.systems}


def find_kinships(evaluation: Evaluation, metric: str) -> dict[str, Kinship | None]:
    """How the models behind a metric's judge are related to each system's generator; the closest one counts.

    Systems without a known generator are absent; all are, if no model is known behind the metric.
    """
    recorded = read_recorded_spec(evaluation)
    if recorded is None or metric not in recorded.metrics:
        return {}
    used = recorded.list_used(recorded.metrics[metric].node)
    models = [_name_model(recorded, name) for section, name in used if section == "models"]
    if not models:
        return {}
    return {system: _find_closest(generator, models) for system, generator in find_generators(evaluation).items()}


def _find_closest(generator: str, models: list[str]) -> Kinship | None:
    found = {compare_models(generator, model) for model in models}
    return "same" if "same" in found else "family" if "family" in found else None


def _name_model(recorded: RecordedSpec | None, name: str) -> str:
    model = None if recorded is None else recorded.models.get(name)
    called = None if model is None else getattr(model.node, "model", None)
    return called if isinstance(called, str) else name
