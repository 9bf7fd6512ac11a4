"""What numbers mean, in words.

Several judges side by side.

What makes a judge err, from a run with a chat model to the sentences that a user reads.

Labels to buy, in words.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from rageval_spec.calibration.judge_quality import JudgeComparison, JudgeDifference, JudgeRow, Spending, measure_judge
from rageval_spec.calibration.labelled_items import Item, Joined
from rageval_spec.calibration.measures import CalibrationMeasure, Learning, LearningPoint, Need
from rageval_spec.calibration.thresholds import ThresholdCriterion
from rageval_spec.calibration.verdict_sentences import (
    conclude_comparison,
    conclude_judge,
    describe_comparison,
    describe_curve,
    say_needs,
)
from rageval_spec.cli import cli
from rageval_spec.data.outcomes import Interval
from rageval_spec.drawing.view import write_text
from rageval_spec.runner import Options, run
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer
from tests.tiny import write_spec

Floats = NDArray[np.float64]


def say(values: Floats, labels: Floats, criterion: ThresholdCriterion | None = None) -> str:
    items: list[Item] = [("golden", "v1", f"q{row}", None) for row in range(len(values))]
    joined = Joined("faithfulness", tuple(items), tuple(values.tolist()), tuple(labels.tolist()), (), {})
    return "\n".join(conclude_judge(measure_judge(joined, criterion, resamples=200)))


def simulate(rows: int, share: Callable[[Floats], Floats], seed: int = 1) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    values = random.random(rows)
    return values, (random.random(rows) < share(values)).astype(np.float64)


def test_a_judge_that_means_what_it_says_is_praised_only() -> None:
    text = say(*simulate(300, lambda values: values))
    assert text.startswith("✓ The judge ranks a good answer above a bad one in 8")
    assert "\n" not in text


def test_values_that_do_not_mean_what_they_say_and_what_a_map_does() -> None:
    text = say(*simulate(300, lambda values: values**4))
    assert "! Its values do not mean what they say: they are 0.3" in text
    assert "Platt's map brings this down to 0.0" in text
    assert "], on questions held out." in text


def test_the_judges_own_values_are_not_taken_for_labels() -> None:
    values = np.linspace(0, 1, 60)
    assert say(values, values).startswith("! Every label is exactly the judge's value: make sure that people gave them")
    decisions = values.round()
    assert "Every label" not in say(decisions, decisions)


def test_guessing_is_called_guessing() -> None:
    assert "✗ The judge cannot be distinguished from guessing" in say(*simulate(100, lambda values: values * 0 + 0.5))


def test_a_precision_that_is_not_reached() -> None:
    values, labels = simulate(100, lambda values: 0.3 + values * 0.4)
    assert "! No threshold reaches a precision of 0.99 on these labels; the highest is " in say(
        values.round(1), labels, ThresholdCriterion("precision", 0.99)
    )


def test_a_precision_that_only_the_labels_that_chose_it_reach() -> None:
    text = say(*simulate(60, lambda values: 0.2 + values * 0.5), ThresholdCriterion("precision", 0.8))
    assert "! On questions held out, the precision of 0.8 is not reached: " in text
    assert "For a promise, use --guarantee." in text


def test_a_judge_is_not_praised_for_one_bad_answer() -> None:
    values, labels = np.linspace(0.1, 0.9, 24), np.ones(24)
    labels[0] = 0.0
    text = say(values, labels)
    assert "! Only 1 labelled item is bad (below 0.5), too few to show whether the judge tells right from wrong" in text
    assert "✓" not in text
    labels[:4] = 0.0
    assert "! Only 4 labelled items are bad" in say(values, labels)
    assert "! Only 4 labelled items are good" in say(values, 1 - labels)
    labels[:5] = 0.0
    assert "✓ The judge ranks" in say(values, labels)


def test_degenerate_labels() -> None:
    assert "label 50 or more, so that intervals" in say(np.array([0.1, 0.5, 0.9]), np.array([0.0, 1.0, 1.0]))
    assert "Only 0 labelled items are good (above 0.5), too few" in say(np.full(60, 0.7), np.zeros(60))
    split = say(np.full(60, 0.7), np.array([1.0, 0.5] * 30))
    assert "Only 0 labelled items are bad (below 0.5), too few" in split
    assert "label 5 or more" in split
    by_turns = (np.arange(60) % 2).astype(np.float64)
    assert "cannot be distinguished from guessing" in say(np.array([0.7] * 59 + [0.8]), by_turns)
    assert "cannot be distinguished from guessing" in say(np.full(60, 0.7), by_turns)
    backwards = say(np.linspace(0, 1, 60), (np.arange(60) < 30).astype(np.float64))
    assert (
        "✗ The judge is the wrong way round: it ranks a bad answer above a good one in 100% of the cases." in backwards
    )


def interval(low: float, high: float) -> Interval:
    return Interval(low, high, 0.95, "bootstrap-bca")


def row(metric: str, judge: str | None, spending: Spending) -> JudgeRow:
    measures = (
        CalibrationMeasure("auroc", 0.9, interval(0.85, 0.95)),
        CalibrationMeasure("mae", 0.2, None),
        CalibrationMeasure("bias", 0.1, None),
    )
    return JudgeRow(metric, judge, measures, spending)


def differ(first: str, second: str, difference: float, p_value: float = 0.002) -> JudgeDifference:
    return JudgeDifference(
        first, second, "auroc", difference, interval(difference - 0.05, difference + 0.05), p_value, p_value
    )


def show(*differences: JudgeDifference, details: bool = False, judge: str | None = "fast") -> str:
    rows = (
        row("a", judge, Spending(0.0012, 2.0, 0.31)),
        row("b", judge, Spending(0.0, 0.0)),
        row("c", None, Spending()),
    )
    return write_text(describe_comparison(JudgeComparison(80, rows, differences), details=details)).decode()


def test_a_row_for_each_judge_with_what_it_costs() -> None:
    text = show()
    assert text.startswith("3 judges on the same 80 labelled items\n")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "metric judge AUROC bias $/sample s/sample" in lines
    assert "a fast 0.900 [0.850, 0.950] +0.100 0.0012 0.310" in lines
    assert "b fast 0.900 [0.850, 0.950] +0.100 0" in lines
    assert "c 0.900 [0.850, 0.950] +0.100" in lines


def test_what_no_judge_spent_has_no_column() -> None:
    rows = (row("a", "fast", Spending(0.0)), row("b", "slow", Spending(0.1)))
    text = write_text(describe_comparison(JudgeComparison(80, rows, ()), details=False)).decode()
    assert "$/sample" in text
    assert "s/sample" not in text.replace("$/sample", "")


def test_judges_that_are_not_known_have_no_column() -> None:
    assert "judge  " not in show(judge=None)


def test_the_better_judge_is_named_first() -> None:
    found = JudgeComparison(80, (), (differ("a", "b", -0.1), differ("b", "c", 0.2), differ("a", "c", 0.01, 0.8)))
    assert [*conclude_comparison(found)] == [
        "b tells good answers from bad ones better than a: AUROC +0.100 [0.050, 0.150], Holm-adjusted p = 0.0020.",
        "b tells good answers from bad ones better than c: AUROC +0.200 [0.150, 0.250], Holm-adjusted p = 0.0020.",
    ]


def test_nothing_certain_is_said_so() -> None:
    assert "These labels do not show that one judge is better than another." in show(differ("a", "b", 0.01, 0.8))


def test_many_differences_are_counted() -> None:
    found = JudgeComparison(80, (), tuple(differ("a", f"b{number}", 0.1) for number in range(8)))
    assert [*conclude_comparison(found)][-1] == "2 more differences of this kind: see --details."


def test_details_have_every_pair() -> None:
    assert "a less b" not in show(differ("a", "b", 0.01, 0.8))
    text = show(differ("a", "b", 0.01, 0.8), details=True)
    assert "a less b  AUROC    +0.010 [-0.040, 0.060]      0.8000" in text
    assert "mean absolute error" in text


COUNT = 60
PHRASES = ("furthermore, it ought to be noted", "consequently, one would say", "notwithstanding limitations")


def say_biases(number: int, body: dict[str, Any]) -> Answer:
    """Grades what is right with 4 of 5, and likes answers of its own model; its reasons are its own in style."""
    asked = body["messages"][-1]["content"]
    grade = (4 if "right" in asked else 2) + (1 if "furthermore" in asked else 0)
    reason = f"{PHRASES[number % 3]}, {PHRASES[(number + 1) % 3]}."
    return Answer(completion(json.dumps({"reason": reason, "grade": grade})))


@pytest.fixture
def server() -> Any:
    running = ChatServer(say_biases)
    yield running
    running.close()


def build(folder: Path, server: ChatServer) -> tuple[Path, Path]:
    """Two systems that are right equally often; the judge's model wrote the answers of one."""
    draw = random.Random(4)
    labels = ["query_id,system,metric,annotator,value"]
    for system in ("ours", "theirs"):
        rows = []
        for number in range(COUNT):
            is_right = draw.random() < 0.5
            style = f"{PHRASES[0]}, {draw.choice(PHRASES)}" if system == "ours" else "well, so it is"
            said = f"{style} {'right' if is_right else 'wrong'} {'indeed ' * draw.randrange(12)}"
            rows.append({"query_id": f"q{number}", "question": f"Is it {number}?", "answer": said, "contexts": ["It."]})
            labels.append(f"q{number},{system},helpful,ann,{0.75 if is_right else 0.25}")
        (folder / f"{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "labels.csv").write_text("\n".join(labels))
    answers = {"use": "file", "holds": "answers"}
    spec = write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "ours.jsonl"}},
        systems={
            "theirs": {**answers, "path": "theirs.jsonl", "generator": "llama3.1:8b"},
            "ours": {**answers, "path": "ours.jsonl", "generator": "gpt"},
        },
        models={"gpt": {"use": "chat", "base_url": server.url, "model": "gpt-4o"}},
        judges={"strict": {"use": "grade", "model": "gpt"}},
        metrics=[{"use": "rubric", "criteria": "Is it helpful?", "judge": "strict", "as": "helpful"}],
        reports=[],
    )
    run(spec, Options(output=folder / "out", no_history=True))
    return folder / "out", folder / "labels.csv"


def test_self_preference_and_style_are_said_from_an_evaluation_on(tmp_path: Path, server: ChatServer) -> None:
    results, labels = build(tmp_path, server)
    called = [str(results), "--labels", str(labels)]
    result = CliRunner().invoke(cli, ["calibrate", *called, "--details"])
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "! Answers of its own model (ours) make the judge 0.2" in said
    assert "more generous than answers of other models that people rate the same (adjusted p < 0.0001)." in said
    # Length and style explain nothing that the model does not.
    assert said.partition("What makes the judge err")[2].count("! ") == 2
    found = json.loads(CliRunner().invoke(cli, ["calibrate", *called, "--format", "json"]).output)
    (calibration,) = found["calibrations"]
    own = next(one for one in calibration["biases"] if one["name"] == "own model")
    assert own["is_significant"]
    assert "style" in {one["name"] for one in calibration["biases"]}
    assert own["said"].startswith("Answers of its own model (ours)")
    assert {one["name"] for one in calibration["properties_left_out"]} >= {"contexts"}
    assert calibration["why_no_biases"] is None


def test_too_few_labels_are_said(tmp_path: Path, server: ChatServer) -> None:
    results, labels = build(tmp_path, server)
    lines = labels.read_text().splitlines()
    labels.write_text("\n".join(line for line in lines if line.startswith(("query_id", *(f"q{n}," for n in range(5))))))
    result = CliRunner().invoke(cli, ["calibrate", str(results), "--labels", str(labels)])
    said = " ".join(result.output.split())
    assert "This cannot be computed: 5 labelled questions; 10 are needed for each property." in said


ALONE = Need("labels_alone", 390, 0.3)
BOUNDS = Interval(170.4, 240.2, 0.95, "bootstrap-bca")


@pytest.mark.parametrize(
    ("need", "sentence"),
    [
        (
            Need("corrected_mean", 210, 0.2, BOUNDS),
            "The mean to ±0.05 takes 210 labels [170, 241] with this judge: 90 more. Without the judge, it takes 390.",
        ),
        (
            Need("corrected_mean", 80, 0.09, None),
            "The corrected mean is known to ±0.045, so that ±0.05 needs no more labels. "
            "Without the judge, it takes 390.",
        ),
        (
            Need("corrected_mean", None, 0.2, None),
            "Labels of all 500 answers would not show the mean to ±0.05: have the judge score more answers. Without "
            "the judge, it takes 390.",
        ),
    ],
)
def test_the_labels_of_a_mean(need: Need, sentence: str) -> None:
    assert [*say_needs(Learning(0.1, 500, (need, ALONE), ()), 120)] == [sentence]


def test_the_labels_of_other_measures() -> None:
    needs = (Need("auroc", 300, 0.12), Need("kappa", 900, 0.25))
    assert [*say_needs(Learning(0.1, 500, needs, ()), 120)] == [
        "AUROC to ±0.05 takes about 300 labels; kappa to ±0.05 takes about 900 labels."
    ]
    assert [*say_needs(Learning(0.5, 500, needs, ()), 120)] == []


def test_large_numbers_of_labels_are_grouped() -> None:
    needs = (
        Need("corrected_mean", 1618, 0.2, Interval(1170.4, 2240.2, 0.95, "bootstrap-bca")),
        Need("labels_alone", 3900, 0.3),
    )
    told = "takes 1,618 labels [1,170, 2,241] with this judge: 1,498 more. Without the judge, it takes 3,900."
    assert [*say_needs(Learning(0.1, 5000, needs, ()), 120)] == [f"The mean to ±0.05 {told}"]


def test_the_curve_says_what_is_expected() -> None:
    points = (LearningPoint(60, {"corrected_mean": 0.2}, True), LearningPoint(120, {"corrected_mean": 0.14}, False))
    text = write_text([describe_curve(Learning(0.1, 500, (), points))]).decode()
    assert "    60          ±0.100\n" in text
    assert "   120          ±0.070  expected" in text
