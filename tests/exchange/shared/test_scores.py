"""The values of an evaluation, each with its trace.

Names of values at places that several answers share.

Values go to the traces of their answers, or with the answers into an experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rageval_spec.data.traces import Document, Trace, TraceLink
from rageval_spec.errors import UsageError
from rageval_spec.exchange.shared.contracts import Parcel
from rageval_spec.exchange.shared.scores import (
    EvaluationScores,
    ExperimentNode,
    ExperimentTarget,
    Judgements,
    Names,
    Score,
)
from rageval_spec.history.saved_evaluations import load_record
from rageval_spec.plugin import Context
from tests.exchange.evaluating import evaluate
from tests.exchange.traced_evaluation import evaluate as evaluate_traced


def test_answers_of_another_tool_are_refused(toy: ModuleType, tmp_path: Path) -> None:
    results = evaluate(tmp_path)
    target = toy.ToyTarget(toy.ToyTarget.node_type(), None)
    scores = toy.EvaluationScores(load_record(results).evaluation, "phoenix")
    with pytest.raises(UsageError, match="no answer has a trace of phoenix; their traces are of toy; evaluate answers"):
        list(scores)
    assert isinstance(target, toy.Target)


TRACES = [
    Trace(TraceLink("toy", f"t{number}"), f"Question {number}?", answer=answer, documents=(Document("a", "d1"),))
    for number, answer in enumerate(["Hold the button. For an hour.", None])
]


def judge(**changes: Any) -> tuple[Judgements, list[Score]]:
    evaluation = evaluate_traced(TRACES, 0.5, **changes)
    return Judgements(evaluation), list(EvaluationScores(evaluation, "toy"))


def test_the_reason_counts_the_claims_and_quotes_those_without_support() -> None:
    judgements, (faithful, *_) = judge()
    reason = judgements.explain(faithful)
    assert reason == '1 supported, 1 contradicted\ncontradicted: "For an hour.": the text says a second'


def test_a_value_that_is_not_there_is_explained_by_its_reason_and_labelled_by_its_status() -> None:
    judgements, scores = judge()
    lost = next(score for score in scores if score.value is None)
    assert (judgements.explain(lost), judgements.label(lost)) == ("there is no answer", "unscorable")


def test_the_label_is_the_word_of_the_scale() -> None:
    judgements, (faithful, ndcg, *_) = judge()
    assert judgements.label(faithful) == "good"
    assert judgements.label(replace(faithful, value=0.4)) == "poor"
    assert judgements.label(ndcg) is None


def test_metrics_with_a_judge_are_told_from_those_without() -> None:
    judgements, _ = judge()
    assert judgements.is_judged("faithfulness")
    assert not judgements.is_judged("ndcg@10")
    named, _ = judge(spec={"metrics": [{"use": "rubric", "as": "polite", "judge": "strict"}]})
    assert named.is_judged("polite")


def test_long_reasons_quote_only_a_part() -> None:
    judgements, (faithful, *_) = judge()
    claims = ", ".join('{"text": "%s", "verdict": "contradicted"}' % ("word " * 200) for _ in range(9))
    reason = judgements.explain(replace(faithful, details=f'{{"claims": [{claims}]}}'))
    assert reason is not None
    assert reason.endswith("and 4 more")
    assert len(reason) < 2000


def test_a_value_without_details_has_no_reason() -> None:
    judgements, (_, ndcg, *_) = judge()
    assert judgements.explain(ndcg) is None


def score(system: str) -> Score:
    return Score("golden", system, "q1", "faithfulness", 0.5, "scored", None, None, {})


def test_only_those_who_come_later_to_a_place_are_named_in_full() -> None:
    names = Names()
    assert names.choose("t1", score("v1"), "faithfulness") == "faithfulness"
    assert names.choose("t1", score("v1"), "ndcg@10") == "ndcg@10"
    assert names.choose("t1", score("v2"), "faithfulness") == "faithfulness (golden/v2)"
    assert names.choose("t2", score("v2"), "faithfulness") == "faithfulness"


class Recorder:
    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class ToyNode(ExperimentNode):
    url_variables = ()
    usual_url = "http://toy"


class Toy(ExperimentTarget[ToyNode]):
    tool = "toy"

    def connect(self) -> Recorder:
        return Recorder()

    def send(self, parcels: Sequence[Parcel]) -> None:
        self.api.bodies.extend(parcel.body for parcel in parcels)

    def make_answer(self, score: Any, run: str) -> Parcel:
        return Parcel(f"answer/{score.query_id}", [run, score.query_id], "answer", "answer")

    def make_value(self, score: Any, judgements: Any, names: Any, run: str | None) -> Parcel:
        return Parcel(score.key, [run, score.metric], "value")


def test_values_go_to_traces_and_with_a_dataset_after_their_answers(toy: ModuleType, tmp_path: Path) -> None:
    evaluation = load_record(evaluate(tmp_path)).evaluation
    traced = Toy(ToyNode(), Context("toy"))
    assert traced.destination == "http://toy"
    assert [one.body for one in traced.list_parcels(evaluation)][:2] == [[None, "is_json"], [None, "latency@p50"]]
    experiment = Toy(ToyNode(dataset="golden", run="v2"), Context("toy"))
    assert experiment.destination == "http://toy, dataset golden"
    parcels = list(experiment.list_parcels(evaluation))
    assert [one.body for one in parcels[:3]] == [["v2", "t0:s0"], ["v2", "is_json"], ["v2", "latency@p50"]]
    assert len(parcels) == 15
    experiment.send(parcels[:2])
    api = experiment.api
    experiment.send(parcels[2:])
    assert experiment.api is api and len(api.bodies) == 15
    experiment.close()
    assert api.is_closed
