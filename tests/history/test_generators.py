from __future__ import annotations

from dataclasses import replace

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.history.generators import find_generators, find_kinships
from tests.history.recorded import evaluate


def generated_by(**generators: str) -> Evaluation:
    """The evaluation of `recorded`, whose model `gpt` is called otherwise, with a generator of its systems."""
    evaluation = evaluate()
    spec = dict(evaluation.spec)
    spec["systems"] = {name: {"use": "file", "path": "x", **generators} for name in evaluation.systems}
    spec["models"] = {"gpt": {"use": "chat", "model": "gpt-4o-2024-08-06"}}
    return replace(evaluation, spec=spec)


def test_a_metric_is_related_to_the_generators_through_its_judge() -> None:
    evaluation = generated_by(generator="openai/gpt-4o")
    systems = evaluation.systems
    assert find_generators(evaluation) == dict.fromkeys(systems, "openai/gpt-4o")
    assert find_kinships(evaluation, "context_recall") == dict.fromkeys(systems, "same")
    assert find_kinships(generated_by(generator="gpt-4o-mini"), "context_recall") == dict.fromkeys(systems, "family")
    assert find_kinships(generated_by(generator="claude-3-opus"), "context_recall") == dict.fromkeys(systems)


def test_a_generator_can_be_a_model_of_the_spec() -> None:
    evaluation = generated_by(generator="gpt")
    assert {*find_generators(evaluation).values()} == {"gpt-4o-2024-08-06"}
    assert {*find_kinships(evaluation, "context_recall").values()} == {"same"}


def test_without_a_generator_or_a_model_nothing_is_known() -> None:
    assert find_kinships(generated_by(), "context_recall") == {}
    assert find_kinships(generated_by(generator="gpt-4o"), "latency") == {}
    assert find_kinships(generated_by(generator="gpt-4o"), "no such metric") == {}
    assert find_generators(replace(generated_by(generator="gpt-4o"), spec={})) == {}
