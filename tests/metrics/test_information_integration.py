from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.samples import Sample
from tests.metrics.judges import RuleJudge, calls, measure, metric, sample


def query(query_id: str, group: str, condition: str, answer: str) -> Sample:
    return sample(query_id, answer=answer, group=group, condition=condition, reference="May 18 and March 1")


RIGHT, HALF = "On May 18 and March 1.", "On May 18."


def test_hand_worked() -> None:
    queries = [
        query("a1", "a", "all", RIGHT),
        query("a2", "a", "without", HALF),
        query("b1", "b", "all", RIGHT),
        query("b2", "b", "without", RIGHT),  # known without the source, so nothing was combined
        query("c1", "c", "all", HALF),
        query("c2", "c", "without", RIGHT),
        query("d1", "d", "all", RIGHT),
        query("d2", "d", "without", HALF),
        query("d3", "d", "without", RIGHT),
    ]
    found = measure(metric("information_integration"), *queries)
    assert [one.value for one in found] == [1.0, None, 0.0, None, -1.0, None, 0.5, None, None]
    assert found[6].details is not None
    assert found[6].details["right"] == {"all": 1.0, "without": 0.5}
    (note,) = metric("information_integration").compute(queries).written_notes
    assert note.message == "answers are right: 0.750 under 'all', 0.625 under 'without', over 4 groups"


@pytest.mark.parametrize(
    ("answer", "references", "value"),
    [
        ("May 18 and March 1.", ("May 18", "March 1"), 1.0),
        ("May 18.", ("May 18", "March 1"), 0.5),
        ("May 18.", ("May 18", "May 18", " ", "March 1"), 0.5),  # equal parts count once, empty parts do not count
        ("April.", ("May 18", "March 1"), 0.0),
        ("", ("May 18",), 0.0),
    ],
)
def test_parts(answer: str, references: tuple[str, ...], value: float) -> None:
    built = metric("information_integration", mode="parts")
    assert built.needs == {"answer", "reference"}
    (found,) = measure(built, sample(answer=answer, references=references))
    assert (found.value, found.status) == (value, "scored")
    assert found.details is not None
    assert len(found.details["parts"]) == len({one for one in references if one.strip()})


def test_parts_by_a_judge() -> None:
    judge = RuleJudge()
    built = metric("information_integration", judge, mode="parts", by="judge")
    one = sample("1", answer="a|b", references=("a|x", "b"))
    other = sample("2", answer="a", references=("broken", "a"))
    found = measure(built, one, other)
    assert found[0].value == 0.75
    assert found[0].details is not None
    assert [part["held"] for part in found[0].details["parts"]] == [0.5, 1.0]
    assert (found[1].status, found[1].reason) == ("error", "the reply is no JSON")
    assert judge.asked == [("completeness", ("1", "1", "2", "2"))]
    assert calls(built.estimate([one])) == ["support a|x > a|b", "support b > a|b"]


def test_references_without_text_have_no_parts() -> None:
    built = metric("information_integration", mode="parts")
    (found,) = measure(built, sample(answer="a", references=("", " ")))
    assert (found.status, found.reason) == ("unscorable", "the reference is empty")


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"mode": "parts", "by": "exact"}, "compares whole answers"),
        ({"mode": "parts", "by": "token_f1"}, "compares whole answers"),
        ({"without": "all"}, "'all' and 'without' are both 'all'"),
        ({"by": "judge"}, "this metric needs a judge"),
    ],
)
def test_check(keys: dict[str, Any], fault: str) -> None:
    assert fault in str(metric("information_integration", **keys).check())


def test_name() -> None:
    assert metric("information_integration", all_="both", without="one").name == (
        "information_integration(all=both,without=one)"
    )
