"""What `calibrate --spec` works with is found, or its lack explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.calibrate.gathering import choose_metric, gather
from rageval_spec.data.labels import Label
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.asking import find_asked
from rageval_spec.pipeline.parts import build_parts
from rageval_spec.progress import ProgressDisplay
from rageval_spec.spec import load
from tests.answered_evaluation import answered, sample, value
from tests.tiny import write_spec

CASCADE = {"use": "cascade", "steps": ["overlap", "embedding"]}


def parts_of(folder: Path, *metrics: Any) -> Any:
    (folder / "answers.jsonl").write_text('{"query_id": "q1", "answer": "red", "contexts": ["red"]}\n')
    path = write_spec(
        folder,
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        judges={"tiers": CASCADE},
        metrics=[*metrics],
    )
    return build_parts(load(path))


FAITHFULNESS = {"use": "faithfulness", "judge": "tiers"}
RECALL = {"use": "context_recall", "judge": "tiers"}


def test_the_only_metric_with_such_a_judge_needs_no_name(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, {"use": "faithfulness", "judge": "overlap", "as": "plain"}, FAITHFULNESS, "token_f1")
    assert choose_metric(parts, (), ["cascade"]) == "faithfulness"
    assert choose_metric(parts, ("plain",), ["cascade"]) == "plain"


@pytest.mark.parametrize(
    ("metrics", "named", "message"),
    [
        ([FAITHFULNESS, RECALL], (), "name the metric .* with --metric: faithfulness, context_recall each ask one"),
        (["token_f1"], (), "name the metric whose judge is a cascade, with --metric: no metric asks one"),
        ([FAITHFULNESS], ("a", "b"), "the steps of one judge at a time: name one metric"),
    ],
)
def test_the_metric_is_asked_for(tmp_path: Path, metrics: list[Any], named: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_metric(parts_of(tmp_path, *metrics), named, ["cascade"])


VALUES = [
    value("q1", "faithfulness", 0.5, details={"score": 0.5}),
    value("q2", "faithfulness", None, details={"claims": []}),
    value("q3", "faithfulness", None),
    value("q4", "faithfulness", None, status="error", details={"raw": "?"}),
]
EVALUATION = answered(VALUES, [sample(f"q{number}") for number in range(1, 5)])


def test_all_answers_that_the_judge_saw_are_taken(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, FAITHFULNESS)
    asked = find_asked(parts, "faithfulness")
    found = gather(EVALUATION, asked, parts, ProgressDisplay(quiet=True), None)
    assert [item[2] for item in found.items] == ["q1", "q2"]
    labels = [Label("q2", "faithfulness", 1.0, "ann"), Label("q3", "faithfulness", 1.0, "ann")]
    labelled = gather(EVALUATION, asked, parts, ProgressDisplay(quiet=True), (labels, None))
    assert [item[2] for item in labelled.items] == ["q2"]


def test_judges_without_steps_and_labels_of_claims_are_refused(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, {"use": "faithfulness", "judge": "overlap"}, {**FAITHFULNESS, "as": "tiered"})
    quiet = ProgressDisplay(quiet=True)
    with pytest.raises(UsageError, match="the judge 'overlap' of faithfulness is neither; leave out"):
        gather(EVALUATION, find_asked(parts, "faithfulness"), parts, quiet, None)
    with pytest.raises(UsageError, match="the results have no metric 'tiered'; run the spec first"):
        gather(EVALUATION, find_asked(parts, "tiered"), parts, quiet, None)
