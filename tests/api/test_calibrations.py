from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rageval_spec
from rageval_spec.api.calibrations import Calibrations
from rageval_spec.commands.calibrate.judges_against_labels import calibrate_judges
from rageval_spec.errors import DataError, UsageError
from tests.answered_evaluation import answered, sample, value
from tests.sample_evaluation import HOSTILE

WORDS = [f"word{number}" for number in range(10)]


@pytest.fixture(scope="module")
def finished() -> rageval_spec.FinishedEvaluation:
    """80 answers of ten words, each with 0 to 10 of them in the context."""
    randomness = random.Random(1)
    known = [randomness.randint(0, 10) for _ in range(80)]
    answer = f"{' '.join(WORDS)}."
    rows = [
        {"id": f"q{number}", "question": "Is it?", "answer": answer, "contexts": [f"{' '.join(WORDS[:count])} x."]}
        for number, count in enumerate(known)
    ]
    return rageval_spec.judge(rows, ["faithfulness"], store=None, quiet=True)


@pytest.fixture(scope="module")
def folder(finished: rageval_spec.FinishedEvaluation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished.save(tmp_path_factory.mktemp("results") / "out")


@pytest.fixture(scope="module")
def rows(finished: rageval_spec.FinishedEvaluation) -> list[dict[str, Any]]:
    """Labels of 60 answers: right is what has 7 of 10 words, but for one in twelve."""
    found = finished.values.select("query_id", "value").sort("query_id").rows()[:60]
    return [
        {"query_id": query_id, "metric": "faithfulness", "value": int((value >= 0.65) != (place % 12 == 0))}
        for place, (query_id, value) in enumerate(found)
    ]


@pytest.fixture(scope="module")
def path(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    pl.DataFrame(rows).write_csv(path)
    return path


@pytest.fixture(scope="module")
def calibrations(finished: rageval_spec.FinishedEvaluation, path: Path) -> Calibrations:
    return rageval_spec.calibrate(finished, path, guarantee="20%")


def test_it_says_what_the_command_says(calibrations: Calibrations, folder: Path, path: Path, tmp_path: Path) -> None:
    def ask(form: str, **options: Any) -> str:
        return calibrate_judges(str(folder), [path], (), (), None, form, guarantee="20%", **options).decode()

    assert calibrations.to_dict() == json.loads(ask("json"))
    assert calibrations.text() == ask("text")
    assert calibrations.text(details=True) == ask("text", details=True)
    ask("text", output=tmp_path / "theirs.json")
    assert calibrations.save(tmp_path / "ours.json") == tmp_path / "ours.json"
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "theirs.json").read_bytes()


def test_the_numbers_of_a_metric_are_its_attributes(calibrations: Calibrations) -> None:
    assert list(calibrations) == ["faithfulness"]
    one = calibrations["faithfulness"]
    content = calibrations.to_dict()["calibrations"][0]
    named = {row["name"]: row for part in ("discrimination", "association", "decisions") for row in content[part]}
    assert one.to_dict() == content
    assert (one.metric, one.judge, one.items) == ("faithfulness", "overlap", 60)
    assert one.auroc is not None
    assert one.auroc.interval is not None
    assert (one.auroc.value, one.auroc.interval.low) == (named["auroc"]["value"], named["auroc"]["interval"]["low"])
    assert one.bias is not None
    assert one.bias.value == named["bias"]["value"]
    assert one.kappa is not None
    assert one.kappa.value == named["kappa"]["value"]
    assert (one.mean.value, one.mean.judged) == (content["mean"]["value"], content["mean"]["judged"])
    assert one.threshold == content["threshold"]["threshold"]
    assert one.agreement.value is None
    assert one.worth_interval is not None
    text = " ".join(calibrations.text().split())
    low, high = one.worth_interval
    assert f"With this judge, 60 labels are worth {one.worth:.0f} [{low:.0f}, {high:.0f}] without it." in text
    assert all(sentence in text for sentence in one.conclusions)


def test_the_labels_to_buy_are_those_that_the_text_names(
    finished: rageval_spec.FinishedEvaluation, rows: list[dict[str, Any]]
) -> None:
    wide = rageval_spec.calibrate(finished, rows, width=0.5)
    assert wide["faithfulness"].labels_to_buy == 0
    narrow = rageval_spec.calibrate(finished, rows[:30], width=0.25)
    assert f"with this judge: {narrow['faithfulness'].labels_to_buy} more." in " ".join(narrow.text().split())
    finest = rageval_spec.calibrate(finished, rows, width=0.01)["faithfulness"]
    assert finest.labels_to_buy is None
    assert finest.conclusions[-2].startswith("Labels of all 80 answers would not show the mean to ±0.005")
    same = rageval_spec.calibrate(finished, [{**row, "value": 1} for row in rows[:5]])["faithfulness"]
    assert (same.auroc, same.threshold, same.kappa, same.labels_to_buy) == (None, None, None, None)
    assert (same.worth, same.worth_interval) == (None, None)


@pytest.mark.parametrize(
    "convert",
    [
        pl.DataFrame,
        pd.DataFrame,
        pa.Table.from_pylist,
        lambda rows: [{**row, "value": np.int64(row["value"])} for row in rows],
        lambda rows: iter([*rows, {"query_id": "q0", "metric": "faithfulness", "value": float("nan")}]),
        lambda rows: [{**row, "value": "yes" if row["value"] else "no"} for row in rows],
    ],
)
def test_labels_can_be_rows(
    convert: Callable[[Any], Any],
    calibrations: Calibrations,
    folder: Path,
    rows: list[dict[str, Any]],
) -> None:
    assert rageval_spec.calibrate(folder, convert(rows), guarantee="20%").to_dict() == calibrations.to_dict()


def test_labels_can_be_in_several_files_with_other_names_and_another_scale(
    finished: rageval_spec.FinishedEvaluation, calibrations: Calibrations, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    table = pl.DataFrame(rows).select("query_id", stars=1 + 4 * pl.col("value"))
    table[:20].write_csv(tmp_path / "ann.csv")
    table[20:].write_parquet(tmp_path / "bob.parquet")
    found = rageval_spec.calibrate(
        finished,
        [str(tmp_path / "ann.csv"), tmp_path / "bob.parquet"],
        metric="faithfulness",
        columns={"value": "stars"},
        scale=(1, 5),
    )
    assert found["faithfulness"].mean == calibrations["faithfulness"].mean


def test_criteria_without_a_metric_are_counted(
    finished: rageval_spec.FinishedEvaluation, rows: list[dict[str, Any]]
) -> None:
    found = rageval_spec.calibrate(finished, [*rows, {"query_id": "q1", "metric": "fluency", "value": 1}])
    assert found.criteria_without_metric == {"fluency": 1}
    assert "left out 1 label of 'fluency', because no metric has this name" in found.text()


JUDGES = {"fast": "overlap", "strict": "e"}


def test_judges_that_are_asked_the_same_are_compared() -> None:
    values = [value(f"q{number}", "strict", 0.9 if number % 3 else 0.6) for number in range(60)]
    values += [value(f"q{number}", "fast", 0.1 * (number * 7 % 11) / 1.1) for number in range(60)]
    metrics = [{"use": "faithfulness", "judge": judge, "as": name} for name, judge in JUDGES.items()]
    recorded = {"metrics": metrics, "judges": {"e": {"use": "embedding"}}, "models": {}, "ranking": {}}
    evaluation = answered(values, [sample(f"q{number}") for number in range(60)], spec=recorded)
    labels = [{"query_id": f"q{number}", "metric": "faithfulness", "value": number % 3 > 0} for number in range(60)]
    found = rageval_spec.calibrate(rageval_spec.FinishedEvaluation(evaluation), labels)
    assert {name: one.judge for name, one in found.items()} == JUDGES
    assert [one.better for one in found.comparisons[0].differences if one.measure == "auroc"] == ["strict"]
    assert [*rageval_spec.calibrate(rageval_spec.FinishedEvaluation(evaluation), labels, judge="e")] == ["strict"]


LABEL = {"query_id": "q1", "metric": "faithfulness", "value": 1}
WRONG: list[tuple[Any, dict[str, Any], str]] = [
    ([{**LABEL, "value": 3}], {}, r"labels\[0\]: the label 3 lies outside .*; name the scale, .*: scale='1..5'"),
    ([LABEL, LABEL], {}, r"labels\[1\]: the same annotator judged q1 .* already at labels\[0\]"),
    ([{"query_id": "q1", "value": 1}], {}, r"add a column 'metric', or name it: metric='faithfulness'$"),
    ([{"query_id": "q1", "points": 1}], {}, "no column has the value .* Name it: columns={'value': 'points'}$"),
    ([{**LABEL, "value": None}], {}, "labels: no row has a value, so there are no labels"),
    ([LABEL], {"columns": {"vale": "value"}}, "^columns: a label has no 'vale'; did you mean 'value'?"),
    ([LABEL], {"columns": {"value": "points"}}, "^labels: there is no column 'points' for value"),
    ([LABEL], {"scale": "1-5"}, "^scale='1-5': write the worst and the best label, such as 1..5"),
    ([LABEL], {"scale": 5}, "^scale='5': write the worst and the best label, such as 1..5"),
    ([LABEL], {"scale": ""}, "^scale='': write the worst and the best label, such as 1..5"),
    ([LABEL], {"threshold": ""}, "^threshold='': write f1, youden or a precision"),
    ([LABEL], {"threshold": "best"}, "^threshold='best': write f1, youden or a precision"),
    ([LABEL], {"guarantee": "all"}, "^guarantee='all': write the largest share of wrong answers"),
    ([LABEL], {"metric": "tone"}, "the results have no metric 'tone'; they have faithfulness"),
    ([LABEL], {"judge": "panel"}, "no labelled metric of the results asks the judge 'panel'; they ask overlap"),
    ([LABEL], {"width": 0}, "^width: write a number above 0 and at most 1, not 0"),
    ([LABEL], {"confidence": 1}, "^confidence: write a number between 0.5 and 1, not 1"),
    ([], {}, "^labels: there are none; a label has at least query_id and value"),
    (5, {}, "^labels: write a list of dicts, .*, not int"),
    ("absent.csv", {}, "^absent.csv: no such file"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "options", "message"), WRONG)
def test_what_is_wrong_is_said_with_its_place_and_by_the_names_of_arguments(
    finished: rageval_spec.FinishedEvaluation, labels: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((DataError, UsageError), match=message) as found:
        rageval_spec.calibrate(finished, labels, **options)
    assert "--" not in str(found.value)


def test_a_label_in_a_file_is_named_by_its_line(finished: rageval_spec.FinishedEvaluation, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("query_id,metric,value\nq1,faithfulness,1\nq2,faithfulness,8\n")
    with pytest.raises(DataError, match=r"labels\.csv:3: the label 8 lies outside the scale"):
        rageval_spec.calibrate(finished, tmp_path / "labels.csv")


@pytest.mark.parametrize("spec", ["specs/labels.yaml", Path("spec.yml"), {"version": 1}])
def test_a_spec_must_be_run_first(spec: Any) -> None:
    with pytest.raises(UsageError, match=r"this is a spec; run it first: calibrate\(rageval_spec\.run\("):
        rageval_spec.calibrate(spec, [LABEL])


def test_what_is_no_evaluation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give what `run` or `load_results` returned, or a results folder, not int"):
        rageval_spec.calibrate(3, [LABEL])  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"is not a results folder: it has no results\.json"):
        rageval_spec.calibrate(tmp_path, [LABEL])


def test_nothing_but_a_calibration_is_written_over(calibrations: Calibrations, tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(UsageError, match=r"notes\.json exists and is not a calibration; choose another name"):
        calibrations.save(tmp_path / "notes.json")


def test_a_notebook_shows_a_table_and_what_the_numbers_mean(calibrations: Calibrations) -> None:
    html, text = calibrations._repr_html_(), repr(calibrations)
    assert html.count("<tr>") == 2
    assert "corrected mean" in html
    assert "<li>faithfulness: ✓ The judge ranks a good answer above a bad one in " in html
    assert text.startswith("faithfulness: labelled items 60, AUROC 0.")
    assert "✓ The judge ranks a good answer above a bad one in " in text


def test_hostile_names_stay_text() -> None:
    evaluation = answered([value(f"q{number}", HOSTILE, number / 20) for number in range(20)])
    labels = [{"query_id": f"q{number}", "metric": HOSTILE, "value": number % 2} for number in range(20)]
    found = rageval_spec.calibrate(rageval_spec.FinishedEvaluation(evaluation), labels)
    assert HOSTILE not in found._repr_html_()
    assert HOSTILE not in repr(found)
