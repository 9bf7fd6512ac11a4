"""What the options of `calibrate` mean.

Which metrics labels are about, and which judges are compared.

The labels that a spec names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.calibration.judge_reports import (
    CalibratedCriterion,
    Known,
    choose,
    count_others,
    explain_other,
    know,
    read_criterion,
    read_spec_labels,
)
from rageval_spec.calibration.thresholds import ThresholdCriterion
from rageval_spec.data.labels import Label
from rageval_spec.errors import UsageError
from rageval_spec.history.metric_definitions import read_recorded_spec
from rageval_spec.spec import load_dict
from tests.history.recorded import evaluate


@pytest.mark.parametrize(
    ("text", "criterion"),
    [
        ("f1", ThresholdCriterion("f1")),
        ("Youden", ThresholdCriterion("youden")),
        ("precision>=0.95", ThresholdCriterion("precision", 0.95)),
        (" precision >= 95 % ", ThresholdCriterion("precision", 0.95)),
        ("precision ≥ .9", ThresholdCriterion("precision", 0.9)),
        ("precision>=1", ThresholdCriterion("precision", 1.0)),
    ],
)
def test_a_criterion_is_read(text: str, criterion: ThresholdCriterion) -> None:
    assert read_criterion(text) == criterion


@pytest.mark.parametrize(
    "text", ["", "accuracy", "precision", "precision>=0", "precision>=95", "precision>=nan", "f1>=1"]
)
def test_a_criterion_that_cannot_be_read_is_explained(text: str) -> None:
    with pytest.raises(UsageError, match=r"write f1, youden or a precision, such as 'precision>=0\.95'"):
        read_criterion(text)


METRICS: dict[str, Any] = {
    "faithfulness": {"use": "faithfulness", "judge": "strict"},
    "words": {"use": "faithfulness", "judge": "words", "as": "words"},
    "tone": {"use": "rubric", "name": "tone", "criteria": "Is it polite?", "judge": "strict", "as": "tone"},
    "style": {"use": "rubric", "name": "style", "criteria": "Is it plain?", "judge": "words", "as": "style"},
}


def labels(*metrics: str) -> list[Label]:
    return [Label(f"q{number}", metric, 1.0, "ann") for number, metric in enumerate(metrics)]


def pick(*criteria: str, metrics: tuple[str, ...] = (), judges: tuple[str, ...] = ()) -> list[CalibratedCriterion]:
    evaluation = evaluate(METRICS)
    return choose(know(evaluation, read_recorded_spec(evaluation)), labels(*criteria), metrics, judges)


def test_the_labelled_metric_is_shown_and_compared_with_those_that_ask_another_judge() -> None:
    (found,) = pick("faithfulness")
    assert (found.shown, found.compared) == (["faithfulness"], ["faithfulness", "words"])
    assert len(found.labels) == 1


def test_metrics_that_ask_something_else_are_not_compared() -> None:
    (tone,) = pick("tone")
    assert (tone.shown, [*tone.compared]) == (["tone"], [])


def test_metrics_and_judges_that_are_named_are_all_shown() -> None:
    for found in (pick("faithfulness", metrics=("faithfulness", "words")), pick("words", judges=("strict", "words"))):
        assert [[*one.shown] for one in found] == [["faithfulness", "words"]] or [[*one.shown] for one in found] == [
            ["words", "faithfulness"]
        ]
        assert len(found[0].compared) == 2
    (one,) = pick("faithfulness", judges=("words",))
    assert (one.shown, [*one.compared]) == (["words"], [])


def test_metrics_that_ask_the_same_judge_are_not_compared() -> None:
    same = dict.fromkeys(("a", "b", "c"), ("faithfulness", "{}"))
    known = Known(("a", "b", "c"), same, {"a": "strict", "b": "strict", "c": "fast"})
    (found,) = choose(known, labels("a"), (), ())
    assert (found.shown, found.compared) == (["a"], ["a", "c"])
    (named,) = choose(known, labels("a"), ("a", "b"), ())
    assert named.compared == ["a", "b"]


def test_each_criterion_has_its_labels() -> None:
    first, second = pick("faithfulness", "tone", "tone")
    assert ([one.metric for one in first.labels], [one.metric for one in second.labels]) == (
        ["faithfulness"],
        ["tone", "tone"],
    )


def test_labels_can_name_the_word_of_metrics_that_ask_the_same() -> None:
    known = Known(("a", "b"), {"a": ("faithfulness", "{}"), "b": ("faithfulness", "{}")})
    (found,) = choose(known, labels("faithfulness"), (), ())
    assert (found.shown, found.compared) == (["a", "b"], ["a", "b"])
    different = Known(("a", "b"), {"a": ("rubric", "polite"), "b": ("rubric", "plain")})
    with pytest.raises(UsageError, match=r"'rubric', which is not a metric of the results; .* are about: a or b"):
        choose(different, labels("rubric"), (), ())


def test_labels_without_a_metric_are_about_the_named_one() -> None:
    (found,) = pick("", "", metrics=("tone",))
    assert (found.shown, len(found.labels)) == (["tone"], 2)
    (both,) = pick("", metrics=("faithfulness", "words"))
    assert both.compared == ["faithfulness", "words"]
    for metrics in ((), ("faithfulness", "tone")):
        with pytest.raises(UsageError, match="add a column 'metric', or name it: --metric faithfulness"):
            pick("", metrics=metrics)


def test_labels_of_criteria_without_a_metric_are_left_out_and_named() -> None:
    (found,) = pick("faithfulness", "fluency", "faithfulnes")
    assert (found.shown, [one.metric for one in found.labels]) == (["faithfulness"], ["faithfulness"])
    known = Known(("faithfulness",))
    others = count_others(known, labels("faithfulness", "fluency", "fluency", "faithfulnes"), ())
    assert others == {"fluency": 2, "faithfulnes": 1}
    assert [explain_other(name, count, known) for name, count in others.items()] == [
        "left out 2 labels of 'fluency', because no metric has this name",
        "left out 1 label of 'faithfulnes', because no metric has this name; did you mean 'faithfulness'?",
    ]
    assert count_others(known, labels("fluency"), ("faithfulness",)) == {}


def test_results_of_earlier_versions_have_only_names() -> None:
    (found,) = choose(Known(("faithfulness", "words")), labels("faithfulness"), (), ())
    assert (found.shown, [*found.compared]) == (["faithfulness"], [])


@pytest.mark.parametrize(
    ("criteria", "metrics", "judges", "message"),
    [
        (("faithfulnes",), (), (), "'faithfulnes', which is not a metric of the results; did you mean 'faithfulness'?"),
        (("tone",), ("words",), (), "no label has the metric 'words'; the labels have tone"),
        (("tone",), (), ("words",), "no labelled metric of the results asks the judge 'words'"),
        (("tone",), (), ("strikt",), "asks the judge 'strikt'; did you mean 'strict'?"),
    ],
)
def test_what_is_not_there_is_explained(
    criteria: tuple[str, ...], metrics: tuple[str, ...], judges: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        pick(*criteria, metrics=metrics, judges=judges)
    assert message in str(caught.value)


def read(folder: Path, metrics: list[dict[str, Any]], labels: dict[str, str]) -> list[Label]:
    (folder / "rows.jsonl").write_text('{"id": "q1", "question": "?", "answer": "a", "contexts": ["a"]}\n')
    for name, content in labels.items():
        (folder / f"{name}.csv").write_text(content)
    spec = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
        "labels": {name: {"use": "csv", "path": f"{name}.csv", "scale": [1, 5]} for name in labels},
        "metrics": metrics,
    }
    return read_spec_labels(load_dict(spec, folder=folder))


FAITHFULNESS = {"use": "faithfulness", "judge": "overlap"}
UNNAMED = "query_id,annotator,value\nq1,ann,4\n"
NAMED = "query_id,metric,annotator,value\nq1,faithfulness,bob,2\n"


def test_the_labels_of_a_metric_get_its_name_and_the_scale_from_0_to_1(tmp_path: Path) -> None:
    (label,) = read(tmp_path, [{**FAITHFULNESS, "labels": "people"}], {"people": UNNAMED, "other": NAMED})
    assert (label.metric, label.value, label.annotator) == ("faithfulness", 0.75, "ann")


def test_without_a_metric_that_names_them_all_labels_count(tmp_path: Path) -> None:
    labels = read(tmp_path, [FAITHFULNESS], {"people": UNNAMED, "other": NAMED})
    assert [(label.metric, label.value) for label in labels] == [("", 0.75), ("faithfulness", 0.25)]


def test_labels_of_two_metrics_keep_their_names(tmp_path: Path) -> None:
    metrics = [{**FAITHFULNESS, "labels": "people"}, {**FAITHFULNESS, "as": "other", "labels": "people"}]
    (label,) = read(tmp_path, metrics, {"people": UNNAMED})
    assert label.metric == ""


def test_a_spec_without_labels(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the spec has no 'labels:'; add them, or name a file: --labels"):
        read(tmp_path, [FAITHFULNESS], {})


def test_yes_is_the_best_of_the_scale(tmp_path: Path) -> None:
    labels = read(tmp_path, [FAITHFULNESS], {"people": "query_id,value\nq1,yes\nq2,no\nq3,1\n"})
    assert [label.value for label in labels] == [1.0, 0.0, 0.0]
