""""""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.data.evaluation import Comparison
from rageval_spec.data.outcomes import GateOutcome, Interval
from rageval_spec.data.results import dump_results
from rageval_spec.drawing.page.page import describe_gate, dump_head, write_files, write_page
from rageval_spec.drawing.page.question_data import collect_questions
from tests.reports.page import make_full_evaluation, make_page_evaluation
from tests.sample_evaluation import make_evaluation


def test_small_data_are_one_file() -> None:
    evaluation = make_page_evaluation()
    files = dict(write_files(evaluation, 3, None))
    assert files == {"": write_page(evaluation, 3, None)}
    names = re.findall(rb'data-part="([\w-]+)"', files[""])
    assert names == [b"head", b"cards-0", b"documents-0"]


def test_large_data_are_files_beside_the_page() -> None:
    files = list(write_files(make_page_evaluation(600), 3, "Nightly", largest=10_000))
    names = [name for name, _ in files]
    assert names == ["parts/cards-0.js", "parts/cards-1.js", "parts/cards-2.js", "parts/documents-0.js", "index.html"]
    page = files[-1][1]
    assert re.findall(rb'data-part="([\w-]+)"', page) == [b"head"]
    assert b"script-src &#x27;self&#x27; &#x27;sha256-" in page
    assert all(re.fullmatch(rb'ragevalPart\("[\w-]+","[A-Za-z0-9+/=]+"\);\n', content) for _, content in files[:-1])


def test_the_head_holds_the_results_and_what_the_page_says_of_them() -> None:
    evaluation = make_full_evaluation()
    head = json.loads(dump_head(evaluation, collect_questions(evaluation), 3, "Nightly"))
    assert head["results"] == json.loads(dump_results(evaluation))
    assert (head["title"], head["digits"]) == ("Nightly", 3)
    assert head["headline"]["title"] == "Not ready"
    assert [gate["scale"] for gate in head["gates"]] == ["value", "change", "value"]
    assert head["notes"] == [{"level": "warning", "text": "golden, v2: 1 of 6 questions could not be scored"}]
    assert head["documents"] == {"count": 4, "starts": [0]}
    assert ["[ ]", "95% confidence interval"] in head["legend"]


def test_a_mark_with_two_meanings_names_the_datasets() -> None:
    evaluation = make_evaluation(("golden", "other"), ("bm25",), {"map": (0.3,)})
    sequence = Interval(0.1, 0.5, 0.95, "betting")
    aggregates = [replace(one, interval=sequence) if one.dataset == "golden" else one for one in evaluation.aggregates]
    stopped = replace(evaluation, aggregates=tuple(aggregates))
    legend = json.loads(dump_head(stopped, collect_questions(stopped), 3, "Nightly"))["legend"]
    assert [meaning for sign, meaning in legend if sign == "[ ]"] == [
        "golden: 95% confidence sequence",
        "other: 95% confidence interval",
    ]


WORSE = Comparison("golden", "map", "dense", "bm25", -0.1, Interval(-0.2, 0.0), 0.01, 0.01, 40, 1, 30)
EVALUATION = replace(make_evaluation(metrics={"map": (0.5, 0.4)}), comparisons=(WORSE,))


def describe(bound: str, lower_is_better: tuple[str, ...] = (), **drop: Any) -> dict[str, Any]:
    gate = GateOutcome(0, "golden", "dense", "map", "fail", bound, -0.15, "", **drop)
    return describe_gate(replace(EVALUATION, lower_is_better=lower_is_better), gate)


@pytest.mark.parametrize(
    ("bound", "bounds"),
    [
        ("≥ 0.4", {"min": 0.4}),
        ("≥ 0.4, target 0.55", {"min": 0.4, "target": 0.55}),
        ("≤ 3.0", {"max": 3.0}),
        ("lower end ≥ 0.85", {"min": 0.85}),
        ("whole interval ≥ 0.85, whole interval target 0.9", {"min": 0.85, "target": 0.9}),
        ("≥ -1e-05, ≤ 2, drop from main ≤ 0.02 (p < 0.05)", {"min": -1e-05, "max": 2.0}),
    ],
)
def test_bounds_on_the_value_lie_around_the_mean(bound: str, bounds: dict[str, float]) -> None:
    found = describe(bound)
    assert found["scale"] == "value"
    assert found["bounds"] == bounds
    assert found["point"] == 0.4
    assert found["interval"] == [pytest.approx(0.36), pytest.approx(0.44)]


def test_bounds_on_a_drop_lie_around_the_difference() -> None:
    assert describe("drop from bm25 ≤ 5% (p < 0.05)", baseline="bm25", max_drop=0.02) == {
        "scale": "change",
        "point": -0.1,
        "interval": [-0.2, 0.0],
        "bounds": {"min": -0.02},
    }
    assert describe("no drop from bm25", baseline="bm25", max_drop=0.0)["bounds"] == {"min": 0.0}
    assert describe("drop from bm25: low > 5%", baseline="bm25")["bounds"] == {}
    rise = describe("drop from bm25 ≤ 0.02", lower_is_better=("map",), baseline="bm25", max_drop=0.02)
    assert rise["bounds"] == {"max": 0.02}


def test_a_baseline_outside_the_evaluation_has_its_interval_too() -> None:
    earlier = replace(WORSE, baseline="main", difference=-0.3)
    gate = GateOutcome(0, "golden", "dense", "map", "fail", "drop from main ≤ 0.02", -0.3, "", baseline="main")
    found = describe_gate(replace(EVALUATION, baselines=(earlier,)), gate)
    assert (found["scale"], found["point"], found["interval"]) == ("change", -0.3, [-0.2, 0.0])
    unknown = describe("lower end drop from main ≤ 0.02", baseline="main", max_drop=0.02)
    assert (unknown["scale"], unknown["point"], unknown["interval"]) == ("change", -0.15, None)


def test_a_bound_on_the_share_of_scored_queries_is_not_drawn() -> None:
    assert describe("scored ≥ 50%")["scale"] is None
