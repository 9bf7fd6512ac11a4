from __future__ import annotations

import json
from dataclasses import replace

from rageval_spec.data.evaluation import Interval
from rageval_spec.data.results import Results
from rageval_spec.reports.shared.page.head import dump_head
from rageval_spec.reports.shared.page.questions import collect_questions
from tests.reports.page import make_full_evaluation
from tests.sample_evaluation import make_evaluation


def test_the_head_holds_the_results_and_what_the_page_says_of_them() -> None:
    evaluation = make_full_evaluation()
    head = json.loads(dump_head(evaluation, collect_questions(evaluation), 3, "Nightly"))
    assert head["results"] == json.loads(Results.of(evaluation).dump())
    assert (head["title"], head["digits"]) == ("Nightly", 3)
    assert head["headline"]["title"] == "Not ready"
    assert [gate["scale"] for gate in head["gates"]] == ["value", "change", "value"]
    assert head["notes"] == [{"level": "warning", "text": "golden, v2: 1 of 6 questions could not be scored"}]
    assert head["documents"] == {"count": 4, "starts": [0]}
    assert ["[ ]", "95% bootstrap interval"] in head["legend"]


def test_a_mark_with_two_meanings_names_the_datasets() -> None:
    evaluation = make_evaluation(("golden", "other"), ("bm25",), {"map": (0.3,)})
    sequence = Interval(0.1, 0.5, 0.95, "betting")
    aggregates = [replace(one, interval=sequence) if one.dataset == "golden" else one for one in evaluation.aggregates]
    stopped = replace(evaluation, aggregates=tuple(aggregates))
    legend = json.loads(dump_head(stopped, collect_questions(stopped), 3, "Nightly"))["legend"]
    assert [meaning for sign, meaning in legend if sign == "[ ]"] == [
        "golden: 95% confidence sequence",
        "other: 95% bootstrap interval",
    ]
