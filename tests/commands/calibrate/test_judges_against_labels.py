"""`calibrate`, as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.commands.calibrate.judges_against_labels import calibrate_judges
from rageval_spec.errors import DataError, UsageError
from tests.answered_evaluation import answered, sample, save, value


@pytest.fixture
def results(tmp_path: Path) -> str:
    """Results of a judge who is right about sixty answers and too generous about all."""
    values = [value(f"q{number}", "faithfulness", 0.95 if number % 3 else 0.6) for number in range(60)]
    values += [value(f"q{number}", "token_f1", 0.5) for number in range(60)]
    return str(save(answered(values, [sample(f"q{number}") for number in range(60)]), tmp_path / "out"))


def write(folder: Path, rows: list[str], header: str = "query_id,metric,annotator,value") -> Path:
    path = folder / "labels.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def label_all(folder: Path, count: int = 54) -> Path:
    return write(folder, [f"q{number},faithfulness,ann,{'yes' if number % 3 else 'no'}" for number in range(count)])


def show(results: str, labels: Path, *, metrics: tuple[str, ...] = (), scale: str | None = None) -> str:
    return " ".join(calibrate_judges(results, [labels], (), metrics, scale, "text").decode().split())


def test_a_judge_is_measured_and_its_mean_corrected(results: str, tmp_path: Path) -> None:
    text = show(results, label_all(tmp_path))
    assert "faithfulness: 54 labelled items, 54 labels by 1 person" in text
    assert "✓ The judge ranks a good answer above a bad one in 100% of the cases." in text
    assert "more generous than people: use the corrected mean." in text
    assert "Yes from 0.775 on (the highest Youden index, on all labels)" in text
    assert "AUROC 1.000 not known: without a mistake, no resample has one" in text
    assert "judge alone 0.833 60" in text
    assert "judge corrected by labels 0.667" in text


def test_labels_of_several_criteria_are_used_as_far_as_there_are_metrics(results: str, tmp_path: Path) -> None:
    path = label_all(tmp_path)
    with path.open("a") as file:
        file.writelines(f"q{number},fluency,ann,{1 + number % 5}\n" for number in range(40))
    text = show(results, path)
    assert "faithfulness: 54 labelled items, 54 labels by 1 person" in text
    assert text.endswith("left out 40 labels of 'fluency', because no metric has this name")
    content = json.loads(calibrate_judges(results, [path], (), (), None, "json"))
    assert (len(content["calibrations"]), content["criteria_without_metric"]) == (1, {"fluency": 40})


def test_details_are_shown_if_they_are_asked_for(results: str, tmp_path: Path) -> None:
    short = show(results, label_all(tmp_path))
    text = calibrate_judges(results, [label_all(tmp_path)], (), (), None, "text", details=True).decode()
    for only in ("Kendall's tau-b", "calibration error, equal counts", "map, on questions held"):
        assert only in text
        assert only not in short


def test_the_threshold_with_a_wanted_precision(results: str, tmp_path: Path) -> None:
    text = calibrate_judges(results, [label_all(tmp_path)], (), (), None, "text", threshold="precision>=0.9").decode()
    assert "Yes from 0.775 on (the lowest with a precision of 0.9 or more, on all labels)" in text


@pytest.fixture
def two_judges(tmp_path: Path) -> str:
    """Results of a judge who is right about sixty answers, and of one who guesses."""
    values = [value(f"q{number}", "faithfulness", 0.95 if number % 3 else 0.6) for number in range(60)]
    values += [value(f"q{number}", "words", 0.1 * (number * 7 % 11) / 1.1) for number in range(60)]
    metrics = [{"use": "faithfulness", "judge": name, "as": name} for name in ("faithfulness", "words")]
    metrics = [{**metrics[0], "judge": "strict"}, {**metrics[1], "judge": "overlap"}]
    judges = {"strict": {"use": "embedding"}}
    recorded = {"metrics": metrics, "judges": judges, "models": {}, "ranking": {}}
    evaluation = answered(values, [sample(f"q{number}") for number in range(60)], spec=recorded)
    return str(save(evaluation, tmp_path / "both"))


def test_judges_that_are_asked_the_same_are_compared(two_judges: str, tmp_path: Path) -> None:
    text = show(two_judges, label_all(tmp_path, 60))
    assert text.startswith("2 judges on the same 60 labelled items")
    assert "faithfulness strict 1.000" in text
    assert "faithfulness tells good answers from bad ones better than words: AUROC +" in text
    assert "faithfulness: 60 labelled items" in text
    assert "words: 60 labelled items" not in text


def test_judges_that_are_named_are_compared_in_few_words(two_judges: str, tmp_path: Path) -> None:
    labels = [label_all(tmp_path, 60)]
    text = calibrate_judges(two_judges, labels, (), (), None, "text", judges=("overlap", "strict")).decode()
    assert "words: 60 labelled items" in text
    assert "mean of what people would say" not in text
    content = json.loads(calibrate_judges(two_judges, labels, (), (), None, "json", judges=("overlap", "strict")))
    assert [one["metric"] for one in content["calibrations"]] == ["faithfulness", "words"]
    (comparison,) = content["comparisons"]
    assert [row["judge"] for row in comparison["rows"]] == ["strict", "overlap"]
    with pytest.raises(UsageError, match="no labelled metric of the results asks the judge 'panel'"):
        calibrate_judges(two_judges, labels, (), (), None, "text", judges=("panel",))


def test_grades_are_put_on_the_scale_from_0_to_1(tmp_path: Path) -> None:
    rubric = {"use": "rubric", "name": "tone", "criteria": "Is it polite?", "scale": [1, 5], "judge": "grader"}
    recorded = {
        "metrics": [rubric],
        "judges": {"grader": {"use": "grade", "model": "gpt"}},
        "models": {},
        "ranking": {},
    }
    values = [value(f"q{number}", "tone", float(1 + number % 5)) for number in range(30)]
    evaluation = answered(values, [sample(f"q{number}") for number in range(30)], spec=recorded)
    results = str(save(evaluation, tmp_path / "graded"))
    labels = write(tmp_path, [f"q{number},tone,ann,{min(2 + number % 5, 5)}" for number in range(20)])
    text = show(results, labels, scale="1..5")
    assert "Shown from 0 (worst) to 1 (best); values of the metric go from 1 to 5." in text
    assert "It is 0.200 more strict than people" in text
    assert "judge alone 0.500 30" in text


def test_few_labels_are_called_so(results: str, tmp_path: Path) -> None:
    text = show(results, label_all(tmp_path, 6))
    assert "Only 6 items are labelled; label 50 or more, so that intervals are narrow enough to decide by." in text


def test_one_sided_labels_say_what_to_label(results: str, tmp_path: Path) -> None:
    text = show(results, write(tmp_path, ["q1,faithfulness,ann,1", "q2,faithfulness,ann,1"]))
    assert "Only 0 labelled items are bad (below 0.5), too few to show whether the judge tells right from wrong" in text


def test_labels_that_are_not_used_are_counted(results: str, tmp_path: Path) -> None:
    text = show(results, write(tmp_path, ["q1,faithfulness,ann,1", "q0,faithfulness,ann,0", "zz,faithfulness,ann,0"]))
    assert "1 label of a question, answer or claim without a value was not used." in text


def test_a_scale_is_asked_for_and_taken(results: str, tmp_path: Path) -> None:
    labels = write(tmp_path, ["q0,faithfulness,ann,2", "q1,faithfulness,ann,5"])
    with pytest.raises(DataError, match=r"name the scale, worst first: --scale 1\.\.5"):
        show(results, labels)
    assert "labels alone 0.625" in show(results, labels, scale="1..5")


def test_json_has_every_number(results: str, tmp_path: Path) -> None:
    content = json.loads(calibrate_judges(results, [label_all(tmp_path)], (), (), None, "json"))
    (found,) = content["calibrations"]
    assert content["version"] == 1
    assert (found["metric"], found["items"], found["yes"]) == ("faithfulness", 54, 36)
    assert found["threshold"]["threshold"] == pytest.approx(0.775)
    assert found["mean"]["rows"] == 60


def test_labels_without_a_metric_belong_to_the_one_that_is_named(results: str, tmp_path: Path) -> None:
    labels = write(tmp_path, ["q0,0", "q1,1"], "id,value")
    with pytest.raises(UsageError, match="add a column 'metric', or name it: --metric"):
        show(results, labels)
    assert "faithfulness: 2 labelled items" in show(results, labels, metrics=("faithfulness",))


@pytest.mark.parametrize(
    ("metrics", "scale", "message"),
    [
        (("faithfulnes",), None, "the results have no metric 'faithfulnes'; did you mean 'faithfulness'?"),
        (("token_f1",), None, "no label has the metric 'token_f1'; the labels have faithfulness"),
        ((), "1-5", r"--scale 1-5: write the worst and the best label, such as 1\.\.5"),
        ((), "3..3", r"--scale 3\.\.3: write the worst and the best label"),
    ],
)
def test_wrong_options_are_explained(
    results: str, tmp_path: Path, metrics: tuple[str, ...], scale: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        show(results, label_all(tmp_path), metrics=metrics, scale=scale)


def guarantee(results: str, labels: Path, limit: str) -> str:
    text = calibrate_judges(results, [labels], (), (), None, "text", guarantee=limit, confidence=0.9)
    return " ".join(text.decode().split())


@pytest.mark.parametrize("limit", ["10%", "wrong <= 10%", "wrong answers sent <= 10 %"])
def test_a_promise_that_can_be_kept_names_its_threshold(results: str, tmp_path: Path, limit: str) -> None:
    text = guarantee(results, label_all(tmp_path, 60), limit)
    assert "✓ Send answers from 0.605 on: at most 10% of the answers that are sent are wrong, with 90%" in text
    assert "Of 60 labelled answers, 40 would be sent, 0 of them wrong." in text


def test_a_promise_that_cannot_be_kept_says_what_can_be(results: str, tmp_path: Path) -> None:
    text = guarantee(results, label_all(tmp_path, 60), "1%")
    assert "✗ At most 1% cannot be promised with 60 labels; the best that can be is 5.6%, from 0.605 on" in text
    assert "Even if no answer were wrong, 230 labels would be needed." in text
    assert "Nothing can be promised" in guarantee(results, write(tmp_path, ["q0,faithfulness,ann,0"]), "5%")


@pytest.mark.parametrize("limit", ["2", "0%", "100%", "right >= 98%"])
def test_a_promise_that_cannot_be_read_is_explained(results: str, tmp_path: Path, limit: str) -> None:
    with pytest.raises(UsageError, match="write the largest share of wrong answers, such as 2% or 'wrong <= 2%'"):
        guarantee(results, label_all(tmp_path), limit)


def test_labels_of_the_worst_answers_count_by_how_likely_they_were_chosen(results: str, tmp_path: Path) -> None:
    rows = [f"q{number},faithfulness,ann,no,low + random,1" for number in range(0, 60, 3)]
    rows += [f"q{number},faithfulness,ann,yes,random,0.25" for number in range(1, 60, 3)][:10]
    text = show(results, write(tmp_path, rows, "query_id,metric,annotator,value,reason,probability"))
    assert "labels alone 0.667" in text  # 10 rows stand for 40, beside 20 that stand for themselves
    assert "The labelled answers were chosen with unequal probabilities, from 0.25 to 1." in text
