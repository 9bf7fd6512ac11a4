"""Queries are divided into slices as a slow reading of the rules divides them.

Conditions hold for values as files have them: typed in JSON, text in CSV.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.datasets import EvaluatedQueries
from rageval_spec.data.tables import Collection
from rageval_spec.pipeline.values.slice_membership import (
    Slice,
    describe,
    find_memberships,
    find_slices,
    holds,
    label,
    list_values,
)
from rageval_spec.spec.blocks.gates import GateNode
from rageval_spec.spec.blocks.slices import ConditionNode, SliceNode, WordsNode

Rows = dict[str, dict[str, Any]]


def evaluated(rows: Rows, ids: list[str] | None = None, references: pl.DataFrame | None = None) -> EvaluatedQueries:
    """A dataset with these other columns, by query; the question of q1 is `question 1`."""
    texts = {"query_id": [*rows], "text": [f"question {name[1:]}" for name in rows]}
    queries = pl.DataFrame(texts, schema=dict.fromkeys(texts, pl.String))
    objects = {"query_id": [*rows], "columns": [json.dumps(row) for row in rows.values()]}
    columns = pl.DataFrame(objects, schema=dict.fromkeys(objects, pl.String))
    collection = Collection(
        "golden",
        load_queries=lambda: queries,
        load_columns=lambda: columns,
        load_references=None if references is None else lambda: references,
    )
    return EvaluatedQueries(collection, pl.Series([*rows] if ids is None else ids, dtype=pl.String))


def divide(node: SliceNode, rows: Rows) -> dict[str, list[str]]:
    return {one.name: list(one.query_ids) for one in find_slices([node], [evaluated(rows)]).slices}


def messages(node: SliceNode, rows: Rows) -> list[tuple[str, str]]:
    return [(note.code, note.message) for note in find_slices([node], [evaluated(rows)]).notes]


def test_there_is_a_slice_for_each_value_numbers_first() -> None:
    rows: Rows = {"q1": {"x": "b"}, "q2": {"x": 10}, "q3": {"x": 9}, "q4": {"x": ["a", "b", "a"]}, "q5": {"x": True}}
    assert divide(SliceNode(by="x"), rows) == {
        "x=9": ["q3"],
        "x=10": ["q2"],
        "x=a": ["q4"],
        "x=b": ["q1", "q4"],
        "x=true": ["q5"],
    }


def test_a_query_without_the_column_is_in_no_slice_and_a_note_counts_them() -> None:
    rows: Rows = {
        "q1": {"x": "b"},
        "q2": {},
        "q3": {"x": None},
        "q4": {"x": ""},
        "q5": {"x": []},
        "q6": {"x": {"a": 1}},
    }
    assert divide(SliceNode(by="x"), rows) == {"x=b": ["q1"]}
    assert messages(SliceNode(by="x"), rows) == [
        ("no_slice_value", "5 of 6 queries have no value in 'x', so no slice by it includes them")
    ]


def test_a_column_that_no_query_has_is_a_warning_that_lists_the_columns() -> None:
    rows: Rows = {"q1": {"level": 1}, "q2": {"topic": 2}}
    found = find_slices([SliceNode(by="x")], [evaluated(rows)])
    assert found.slices == ()
    (note,) = found.notes
    assert note.level == "warning"
    assert note.message == "no query has a value in 'x', so there are no slices by it; the columns are 'level', 'topic'"


def test_small_slices_are_left_out_and_counted() -> None:
    rows = {f"q{n}": {"x": "big" if n < 5 else f"small{n}"} for n in range(8)}
    node = SliceNode(by="x", min_queries=2)
    assert list(divide(node, rows)) == ["x=big"]
    assert messages(node, rows) == [("small_slices", "3 values of 'x' have fewer than 2 queries and no slice")]


def test_too_many_values_keep_those_with_the_most_queries() -> None:
    rows = {f"q{n}": {"x": f"v{n:03}"} for n in range(60)} | {"q99": {"x": "v059"}}
    found = divide(SliceNode(by="x"), rows)
    assert len(found) == 50
    assert list(found) == sorted(found)
    assert "x=v059" in found and "x=v050" not in found
    message = "'x' has 60 values; only the 50 with the most queries have slices ('max_slices')"
    assert messages(SliceNode(by="x"), rows) == [("many_slices", message)]


def test_all_conditions_must_hold() -> None:
    rows: Rows = {
        "q1": {"hops": 2, "kind": "a"},
        "q2": {"hops": "3", "kind": "b"},
        "q3": {"hops": 3, "kind": ["c", "a"]},
    }
    node = SliceNode(name="n", where=(ConditionNode(column="hops", min=2.5), ConditionNode(column="kind", equal="a")))
    (one,) = find_slices([node], [evaluated(rows)]).slices
    assert one == Slice("golden", "n", None, "hops is at least 2.5 and kind is a", ("q3",))


def test_a_slice_that_no_query_is_in_has_a_note() -> None:
    node = SliceNode(name="n", where=ConditionNode(column="x", min=5))
    assert divide(node, {"q1": {"x": 1}}) == {}
    assert messages(node, {"q1": {"x": 1}}) == [
        ("empty_slice", "no queries are in the slice 'n', so it has no numbers")
    ]


def test_question_reference_and_the_like_are_columns_of_every_dataset() -> None:
    rows: Rows = {"q1": {"question": "shadowed"}, "q2": {}, "q3": {}}
    references = pl.DataFrame(
        {
            "query_id": ["q1", "q2"],
            "references": [["two words", "three long words"], []],
            "reference_contexts": pl.Series([None, None], dtype=pl.List(pl.String)),
            "answerable": [True, False],
            "group": ["g", None],
            "condition": ["clean", "noisy"],
        }
    )
    nodes = [
        SliceNode(name="one", where=ConditionNode(column="question", contains="QUESTION 1")),
        SliceNode(name="short", where=ConditionNode(column="reference", words=WordsNode(max=2))),
        SliceNode(by="answerable"),
        SliceNode(by="group"),
        SliceNode(by="condition"),
    ]
    found = find_slices(nodes, [evaluated(rows, references=references)])
    assert {one.name: one.query_ids for one in found.slices} == {
        "one": ("q1",),
        "short": ("q1",),
        "answerable=false": ("q2",),
        "answerable=true": ("q1",),
        "group=g": ("q1",),
        "condition=clean": ("q1",),
        "condition=noisy": ("q2",),
    }


def test_only_evaluated_queries_belong_to_slices() -> None:
    rows = {"q1": {"x": "a"}, "q2": {"x": "a"}}
    (one,) = find_slices([SliceNode(by="x")], [evaluated(rows, ids=["q2", "q2"])]).slices
    assert one.query_ids == ("q2",)


def test_nothing_is_read_without_slices() -> None:
    def fail() -> pl.DataFrame:
        pytest.fail("the columns were read")

    unread = EvaluatedQueries(Collection("golden", load_queries=fail, load_columns=fail), pl.Series(["q1"]))
    assert find_slices([], [unread]).slices == ()


def test_values_of_a_slice_are_those_of_its_dataset_and_queries() -> None:
    values = pl.DataFrame({"dataset": ["a", "b", "a"], "query_id": ["q1", "q1", "q2"], "value": [1.0, 2.0, 3.0]})
    assert Slice("a", "n", None, "", ("q2", "q1")).select(values)["value"].to_list() == [1.0, 3.0]


CELLS = st.none() | st.sampled_from(["a", "b", " a ", "", 1, 1.0, 2.5, True]) | st.lists(st.sampled_from(["a", "c", 1]))
ROWS = st.lists(st.dictionaries(st.sampled_from(["x", "y"]), CELLS), max_size=12)


def slow_names(row: dict[str, Any]) -> list[str]:
    """The names of the slices by `x` of one query, read off the rules one by one."""
    value = row.get("x")
    names = []
    for item in value if isinstance(value, list) else [value]:
        if item is None or item == "":
            continue
        text = {True: "true"}.get(item) if item is True else str(item).strip()
        names.append(f"x={'1' if text == '1.0' else text}")
    return names


@given(ROWS)
def test_memberships_are_those_of_a_slow_reading(rows: list[dict[str, Any]]) -> None:
    named = {f"q{number}": row for number, row in enumerate(rows)}
    nodes = [SliceNode(by="x"), SliceNode(name="ones", where=ConditionNode(column="y", equal=1))]
    table = find_memberships(find_slices(nodes, [evaluated(named)]).slices)
    assert dict(table.schema) == {"dataset": pl.String, "query_id": pl.String, "slices": pl.List(pl.String)}
    expected = {}
    for query_id, row in named.items():
        y = row.get("y")
        ones = ["ones"] if any(item == 1 and item is not True for item in (y if isinstance(y, list) else [y])) else []
        if names := [*dict.fromkeys(slow_names(row)), *ones]:
            expected[query_id] = set(names)
    assert {query_id: set(names) for _, query_id, names in table.iter_rows()} == expected


@pytest.mark.parametrize(
    ("tests", "value", "expected"),
    [
        ({"equal": "hard"}, "hard", True),
        ({"equal": "hard"}, " hard ", True),
        ({"equal": "hard"}, "Hard", False),
        ({"equal": "hard"}, ["easy", "hard"], True),
        ({"equal": "2"}, 2, True),
        ({"equal": 2}, 2.0, True),
        ({"equal": 2}, "2.0", True),
        ({"equal": 2}, "two", False),
        ({"equal": 1}, True, False),
        ({"equal": True}, True, True),
        ({"equal": True}, "TRUE", True),
        ({"equal": True}, 1, False),
        ({"equal": 0}, None, False),
        ({"among": ("a", 3)}, "3", True),
        ({"among": ("a", 3)}, "b", False),
        ({"min": 2}, 2, True),
        ({"min": 2}, "1.9", False),
        ({"min": 2}, "3 apples", False),
        ({"min": 2}, True, False),
        ({"min": 1, "max": 2}, [0, 5], False),
        ({"min": 1, "max": 2}, [0, 2], True),
        ({"max": 10**6}, 10**400, False),
        ({"min": 0}, "nan", False),
        ({"min": 0}, "1_0", False),
        ({"contains": "PDF"}, "a pdf file", True),
        ({"contains": "pdf"}, ["doc", "PDF"], True),
        ({"contains": "pdf"}, {"pdf": 1}, False),
        ({"words": WordsNode(min=2, max=3)}, "one two", True),
        ({"words": WordsNode(min=2)}, "one", False),
        ({"words": WordsNode(max=2)}, "", False),
        ({"equal": "a", "words": WordsNode(max=1)}, ["a", "b c"], True),
    ],
)
def test_a_condition_holds_if_one_value_passes_all_its_tests(tests: dict[str, Any], value: Any, expected: bool) -> None:
    assert holds(ConditionNode(column="x", **tests), value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        ("  ", []),
        ({"a": 1}, []),
        ([None, "", "a", ["b"]], ["a", "b"]),
        ('["a", "b"]', ["a", "b"]),
        ("[1, 2]", [1, 2]),
        ("[sic] a text", ["[sic] a text"]),
        (False, [False]),
        (0, [0]),
    ],
)
def test_values_are_those_of_lists_and_nothing_empty(value: Any, expected: list[Any]) -> None:
    assert list_values(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, "true"), (2.0, "2"), (2.5, "2.5"), (3, "3"), (1e300, "1e+300"), (" two\n words ", "two words")],
)
def test_slices_are_named_after_the_value_on_one_line(value: Any, expected: str) -> None:
    assert label(value) == expected


def test_a_condition_is_told_in_words() -> None:
    assert describe(ConditionNode(column="question", words=WordsNode(min=12))) == "question has at least 12 words"
    assert describe(ConditionNode(column="hops", min=2, max=4)) == "hops is at least 2 and at most 4"
    assert describe(ConditionNode(column="kind", among=("a", True))) == "kind is a or true"
    assert describe(ConditionNode(column="kind", contains="x")) == "kind contains 'x'"


@pytest.mark.parametrize(
    ("value", "bounds"), [(0.1 + 0.2, {"max": 0.3}), (0.8 - 0.1, {"min": 0.7}), (0.3, {"min": 0.3})]
)
def test_a_computed_value_is_at_the_bound_that_it_is_written_as(value: float, bounds: dict[str, float]) -> None:
    assert holds(ConditionNode(column="share", **bounds), value)


COMPOSED, APART = "caf\u00e9", "cafe\u0301"


def test_a_letter_with_an_accent_is_one_letter_however_it_is_written() -> None:
    rows = evaluated({"q1": {"topic": COMPOSED}, "q2": {"topic": APART}, "q3": {"topic": "tea"}})
    found = find_slices([SliceNode(by="topic")], [rows])
    assert [(one.name, one.query_ids) for one in found.slices] == [
        (f"topic={COMPOSED}", ("q1", "q2")),
        ("topic=tea", ("q3",)),
    ]
    for written in (COMPOSED, APART):
        assert GateNode(metric="rr", slice=f"topic={written}").slice == f"topic={COMPOSED}"
        assert SliceNode(name=written, where=ConditionNode(column="topic", equal="x")).name == COMPOSED
        for value in (COMPOSED, APART):
            for condition in ({"equal": written}, {"in": [written]}, {"contains": written[2:]}):
                assert holds(ConditionNode.model_validate({"column": "topic", **condition}), value)
