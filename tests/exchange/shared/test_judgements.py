from __future__ import annotations

from dataclasses import replace
from typing import Any

from rageval_spec.data.trace import Document, Trace, TraceLink
from rageval_spec.exchange.shared.judgements import Judgements
from rageval_spec.exchange.shared.scores import Score, Scores
from tests.exchange.traced_evaluation import evaluate

TRACES = [
    Trace(TraceLink("toy", f"t{number}"), f"Question {number}?", answer=answer, documents=(Document("a", "d1"),))
    for number, answer in enumerate(["Hold the button. For an hour.", None])
]


def judge(**changes: Any) -> tuple[Judgements, list[Score]]:
    evaluation = evaluate(TRACES, 0.5, **changes)
    return Judgements(evaluation), list(Scores(evaluation, "toy"))


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
