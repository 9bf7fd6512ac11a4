from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.plugin import Context
from rageval_spec.reports.json import JsonReport, JsonReportNode
from tests.reports.golden import assert_golden
from tests.sample_evaluation import HOSTILE, make_evaluation, make_hostile_evaluation


def render(evaluation: Evaluation) -> bytes:
    return JsonReport(JsonReportNode(use="json"), Context("json")).render(evaluation)


def test_golden() -> None:
    assert_golden("results.json", render(make_evaluation()))


def test_numbers_and_names_survive() -> None:
    report = json.loads(render(make_hostile_evaluation()))
    assert report["name"] == HOSTILE
    third = 1 / 3
    aggregate = replace(make_evaluation().aggregates[0], mean=third, interval=None)
    report = json.loads(render(replace(make_evaluation(), aggregates=(aggregate,))))
    assert report["aggregates"][0]["mean"] == third
    assert report["aggregates"][0]["interval"] is None


def test_a_lone_surrogate_survives() -> None:
    assert json.loads(render(replace(make_evaluation(), name="a\ud800b")))["name"] == "a\ud800b"


def test_keys_are_sorted() -> None:
    pairs: list[list[str]] = []
    json.loads(render(make_evaluation()), object_pairs_hook=lambda found: pairs.append([key for key, _ in found]))
    assert pairs
    assert all(keys == sorted(keys) for keys in pairs)


def test_not_a_number_is_refused() -> None:
    aggregate = replace(make_evaluation().aggregates[0], mean=float("nan"))
    with pytest.raises(ValueError, match="Out of range float"):
        render(replace(make_evaluation(), aggregates=(aggregate,)))
