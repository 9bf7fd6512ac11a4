from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.results import dump_results, parse_results
from rageval_spec.data.samples import Sample
from rageval_spec.diagnostics import SpecError
from rageval_spec.plugin import Measurement
from rageval_spec.runner import Options, run
from tests.checked_specs import validate
from tests.metrics.comparing import answer_metric, measure


def read(value: object, **keys: Any) -> Measurement:
    """What the metric makes of a value in a column of the questions."""
    sample = Sample("q1", "?", answer="a", columns={"rating": value, "level": "easy"})
    return measure("column", [sample], **{"column": "rating", **keys})[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4, 4.0), (4.5, 4.5), (0, 0.0), (-2, -2.0), (True, 1.0), (False, 0.0), ("4", 4.0), (" 4.5 ", 4.5),
        ("1e-3", 0.001), ("yes", 1.0), ("No", 0.0), ("TRUE", 1.0), ("false", 0.0),
    ],
)  # fmt: skip
def test_numbers_and_truths_are_values(value: object, expected: float) -> None:
    assert (read(value).status, read(value).value) == ("scored", expected)


@pytest.mark.parametrize("value", [None, "", "  ", "n/a", "NaN", "null", "None", "-"])
def test_nothing_is_not_scored(value: object) -> None:
    assert read(value) == Measurement.unscorable("the column 'rating' is empty")


@pytest.mark.parametrize("value", ["good", "4/5", "80%", "4,5", "inf", [4], {"a": 1}, "4 stars", "x" * 500])
def test_what_is_no_number_is_an_error_and_never_zero(value: object) -> None:
    found = read(value)
    assert (found.status, found.value) == ("error", None)
    assert str(found.reason).startswith("the column 'rating' must hold a number, yes or no, not ")
    assert len(str(found.reason)) < 120


@pytest.mark.parametrize(("value", "status"), [(1, "scored"), (5, "scored"), (0, "error"), (5.1, "error")])
def test_a_value_outside_the_range_is_an_error(value: float, status: str) -> None:
    found = read(value, range=[1, 5])
    assert found.status == status
    if status == "error":
        assert found.reason == f"{value:g} is outside the range 1 to 5 that the metric gives"


def test_the_range_and_the_direction_are_those_of_the_spec() -> None:
    assert answer_metric("column", column="rating", range=[1, 5]).bounds == (1.0, 5.0)
    assert answer_metric("column", column="rating").bounds == (float("-inf"), None)
    assert answer_metric("column", column="seconds_lost", higher_is_better=False).higher_is_better is False
    assert answer_metric("column", column="rating").name == "rating"
    assert answer_metric("column", column="rating", **{"as": "stars"}).name == "stars"
    for ends in ([5, 1], [1, 1], [1], [float("-inf"), 1]):
        with pytest.raises(ValidationError):
            answer_metric("column", column="rating", range=ends)


def test_a_question_without_the_column_says_which_there_are() -> None:
    assert read(4, column="ratng").reason == "the query has no column 'ratng'; there are level, rating"


def test_values_inside_objects_and_lists_of_scores_have_names_with_a_dot() -> None:
    scores = {"rating": 4, "scores": {"style": 0.5}, "feedback": [{"name": "thumbs", "value": 1}]}
    sample = Sample("q1", "?", answer="a", columns=scores)
    for column, expected in (("scores.style", 0.5), ("feedback.thumbs", 1.0)):
        assert measure("column", [sample], column=column)[0].value == expected


def test_recorded_answers_come_before_questions_and_are_not_mixed_with_them() -> None:
    samples = [
        Sample("q1", "?", answer="a", columns={"rating": 1}, answer_columns={"rating": 5}),
        Sample("q2", "?", answer="a", columns={"rating": 1}, answer_columns={}),
    ]
    first, second = measure("column", samples, column="rating")
    assert (first.value, second) == (5.0, Measurement.unscorable("the column 'rating' is empty"))


QUESTIONS = "query_id,question,reference,rating,level\n1,A?,a,4,easy\n2,B?,b,5,easy\n3,C?,c,,hard\n4,D?,d,9,hard\n"


def write(folder: Path, *metrics: Any, **blocks: Any) -> Path:
    (folder / "golden.csv").write_text(QUESTIONS)
    rows = [{"query_id": str(n), "answer": "x", "thumbs": n % 2 == 0, "scores": {"style": n / 4}} for n in range(1, 5)]
    (folder / "bot.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "old.jsonl").write_text("".join(json.dumps({**row, "thumbs": False}) + "\n" for row in rows))
    spec = {
        "version": 1,
        "name": "rated",
        "datasets": {"golden": {"use": "csv", "path": "golden.csv"}},
        "systems": {"bot": {"use": "file", "path": "bot.jsonl"}, "old": {"use": "file", "path": "old.jsonl"}},
        "metrics": [*metrics],
        **blocks,
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec))
    return folder / "spec.yaml"


def evaluate(folder: Path, *metrics: Any, **blocks: Any) -> Evaluation:
    return run(write(folder, *metrics, **blocks), Options(store=folder / "store")).evaluation


def test_an_evaluation_has_means_intervals_slices_comparisons_and_gates(tmp_path: Path) -> None:
    gates = [{"metric": "thumbs", "min": 0.4, "system": "bot"}, {"metric": "rating", "min": 4, "min_scored": 0.5}]
    found = evaluate(
        tmp_path,
        {"use": "column", "column": "rating", "range": [1, 5]},
        {"use": "column", "column": "thumbs", "range": [0, 1]},
        {"use": "column", "column": "scores.style", "as": "style"},
        gates=gates,
        slices=[{"by": "level"}],
    )
    rating, thumbs, style = (found.aggregate("golden", "bot", name) for name in ("rating", "thumbs", "style"))
    assert rating is not None and thumbs is not None and style is not None
    assert (rating.mean, rating.scored, rating.total) == (4.5, 2, 4)
    assert rating.interval is not None
    assert 1 <= rating.interval.low < 4.5 < rating.interval.high <= 5
    assert (thumbs.mean, style.mean) == (0.5, 0.625)
    assert found.ranges == {"rating": (1.0, 5.0), "thumbs": (0.0, 1.0)}
    assert parse_results(dump_results(found), "results.json").ranges == found.ranges
    assert {one.name for one in found.slices} == {"level=easy", "level=hard"}
    compared = next(one for one in found.comparisons if one.metric == "thumbs")
    assert compared.difference == -0.5
    assert compared.interval is not None
    assert -1 <= compared.interval.low < compared.interval.high <= 1
    assert [(one.metric, one.outcome) for one in found.gates][:1] == [("thumbs", "pass")]
    said = [note.message for note in found.notes if note.system == "bot" and "rating" in note.message]
    assert said == [
        "rating: 1 of 4 queries failed; the first: 9 is outside the range 1 to 5 that the metric gives",
        "rating: 1 of 4 queries could not be scored: the column 'rating' is empty (3)",
    ]


@pytest.mark.parametrize("need", [{"decide": "certain"}, {"on": "lower"}])
def test_validate_and_the_report_say_that_a_range_is_missing(tmp_path: Path, need: dict[str, str]) -> None:
    rating = {"use": "column", "column": "rating"}
    gate = {"metric": "rating", "min": -9, "min_scored": 0, **need}
    (told,) = validate(write(tmp_path, rating, gates=[gate])).warnings
    key, value = next(iter(need.items()))
    assert told.message == (
        f"the gate cannot pass by '{key}: {value}': the lowest and highest value of 'rating' are not known"
    )
    assert told.hint is not None and told.hint.startswith("write 'range: [lowest, highest]' in the metric")
    found = evaluate(tmp_path, rating, gates=[gate])
    assert {one.outcome for one in found.gates} == {"inconclusive"}
    assert [note.message.partition(",")[0] for note in found.notes if note.code == "no_range"] == [
        "rating: its lowest and highest value are not known"
    ]
    known = write(tmp_path, {**rating, "range": [-9, 9]}, gates=[gate])
    assert validate(known).warnings == ()


@pytest.mark.parametrize(("column", "hint"), [("ratng", "did you mean 'rating'?"), ("thumb", "did you mean 'thumbs'?")])
def test_validate_suggests_the_nearest_column(tmp_path: Path, column: str, hint: str) -> None:
    path = write(tmp_path, {"use": "column", "column": column})
    with pytest.raises(SpecError) as caught:
        validate(path)
    (told,) = caught.value.diagnostics
    assert told.message == f"neither the questions nor the recorded answers have a column {column!r}"
    assert told.hint == hint


def test_validate_knows_the_columns_of_questions_and_of_recorded_answers(tmp_path: Path) -> None:
    for column in ("rating", "thumbs", "scores.style"):
        validate(write(tmp_path, {"use": "column", "column": column}))


def test_a_gate_outside_the_range_is_an_error(tmp_path: Path) -> None:
    rating = {"use": "column", "column": "rating", "range": [1, 5]}
    with pytest.raises(SpecError, match="'rating' is never 7 or more: its values are between 1 and 5"):
        validate(write(tmp_path, rating, gates=[{"metric": "rating", "min": 7}]))
