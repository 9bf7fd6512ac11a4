from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.api.evaluations import run
from rageval_spec.data.samples import Sample
from rageval_spec.data.traces import Document, Step
from rageval_spec.plugin import Measurement
from rageval_spec.recorded.answers_and_steps import read_steps
from tests.metrics.comparing import measure


def calls(*made: str | tuple[str, Any]) -> tuple[Step, ...]:
    """Steps that call tools: a name, or a name and its arguments."""
    pairs = [(one, None) if isinstance(one, str) else (one[0], json.dumps(one[1])) for one in made]
    return tuple(Step("tool", name, given) for name, given in pairs)


def compare(expected: Any, steps: tuple[Step, ...], column: str = "expected_tools", **keys: Any) -> Measurement:
    return measure("tool_correctness", [Sample("q", "?", columns={column: expected}, steps=steps)], **keys)[0]


@pytest.mark.parametrize(
    ("expected", "made", "keys", "value"),
    [
        (["a", "b"], calls("a", "b"), {}, 1.0),
        (["a", "b"], calls("b", "a"), {}, 1.0),
        (["a", "b"], calls("b", "a"), {"order": "strict"}, 1 / 2),
        (["a", "b"], calls("a", "x", "b"), {"order": "strict"}, 4 / 5),
        (["a", "b"], calls("a"), {}, 2 / 3),
        (["a", "a"], calls("a"), {}, 2 / 3),
        (["a"], calls("a", "a"), {}, 2 / 3),
        (["a"], (), {}, 0.0),
        ([], (), {}, 1.0),
        ([], calls("a"), {}, 0.0),
        ([], calls("a"), {"ignore": ["a"]}, 1.0),
        ([{"name": "a", "args": {"x": 1}}], calls(("a", {"x": 1.0})), {}, 1.0),
        ([{"name": "a", "args": {"x": 1}}], calls(("a", {"x": True})), {}, 0.0),
        ([{"name": "a", "args": {"x": 1}}], calls(("a", {"x": 1, "y": 2})), {}, 0.0),
        ([{"name": "a", "args": {"x": 1}}], calls(("a", {"x": 1, "y": 2})), {"arguments": "subset"}, 1.0),
        ([{"name": "a", "args": {"x": 1}}], calls(("a", {"x": 2})), {"arguments": "ignore"}, 1.0),
        ([{"name": "a", "args": {"x": [{"y": 1}]}}], calls(("a", {"x": [{"y": 1}]})), {}, 1.0),
        ([{"name": "a", "args": {}}], calls("a"), {}, 1.0),
        (["a"], calls(("a", {"x": 1})), {}, 1.0),
        ([{"name": "a", "args": {}}], (Step("tool", "a", ""),), {}, 1.0),
        (["a"], (Step("other", "a", output="done"),), {}, 1.0),
        ([], (Step("other", "plan", output="done"),), {}, 1.0),
        ('["a"]', calls("a"), {}, 1.0),
    ],
)
def test_hand_worked(expected: Any, made: tuple[Step, ...], keys: dict[str, Any], value: float) -> None:
    measured = compare(expected, made, **keys)
    assert measured.status == "scored"
    assert measured.value == pytest.approx(value)


def test_what_a_greedy_pairing_would_miss() -> None:
    expected = [{"name": "a", "args": {"x": 1}}, {"name": "a", "args": {"y": 2}}]
    made = calls(("a", {"x": 1, "y": 2}), ("a", {"x": 1}))
    assert compare(expected, made, arguments="subset").value == 1.0


def test_the_worked_examples_of_others() -> None:
    # RAGAS's documentation of tool call F1: 2 of 3 calls are right, none is missing.
    reference = [{"name": "weather_check", "args": {"location": "New York"}},
                 {"name": "temperature_conversion", "args": {"temperature_fahrenheit": 75}}]  # fmt: skip
    place = {"location": "New York"}
    conversion = ("temperature_conversion", {"temperature_fahrenheit": 75})
    made = calls(("weather_check", place), conversion, ("air_quality", place))
    assert compare(reference, made, column="reference_tool_calls").value == pytest.approx(0.8)
    # DeepEval's documentation of tool correctness has 1 here: there, an extra tool does not count.
    assert compare(["WebSearch"], calls("WebSearch", "ToolQuery")).value == pytest.approx(2 / 3)


names = st.lists(st.sampled_from("abc"), max_size=5)


@given(names, names)
def test_pairs_are_the_most_that_are_possible(expected: list[str], made: list[str]) -> None:
    def count(order: tuple[str, ...]) -> int:
        """The longest common subsequence, by its definition."""
        table = [[0] * (len(order) + 1) for _ in range(len(expected) + 1)]
        for i, want in enumerate(expected, 1):
            for j, one in enumerate(order, 1):
                table[i][j] = table[i - 1][j - 1] + 1 if want == one else max(table[i - 1][j], table[i][j - 1])
        return table[-1][-1]

    total = len(expected) + len(made)
    strict = 2 * count(tuple(made)) / total if total else 1.0
    loose = 2 * max(map(count, {*permutations(made)})) / total if total else 1.0
    assert compare(expected, calls(*made), order="strict").value == pytest.approx(strict)
    assert compare(expected, calls(*made)).value == pytest.approx(loose)


@pytest.mark.parametrize(
    ("expected", "made", "status", "reason"),
    [
        (None, (), "unscorable", "the query has no expected calls ('expected_tools')"),
        ("", (), "unscorable", "the query has no expected calls ('expected_tools')"),
        ([{"name": "a", "args": {"x": 1}}], calls("a"), "unscorable",
         "the steps do not record the arguments of 'a'; write 'arguments: ignore'"),
        ("search", (), "error", 'the column \'expected_tools\' must hold a list of calls, such as ["search"] or '
         '[{"name": "search", "arguments": {}}]'),
        ([1], (), "error", "the column 'expected_tools' holds a wrong call: [0] must be an object, not a number"),
        ([{"args": {}}], (), "error", "the column 'expected_tools' holds a call without a 'name'"),
        ("[" * 100_000, (), "error", 'the column \'expected_tools\' must hold a list of calls, such as ["search"] or '
         '[{"name": "search", "arguments": {}}]'),
    ],
)  # fmt: skip
def test_no_value_without_something_to_compare(expected: Any, made: tuple[Step, ...], status: str, reason: str) -> None:
    measured = compare(expected, made)
    assert (measured.status, measured.value, measured.reason) == (status, None, reason)


def test_a_tool_that_searches_is_a_call_and_a_thought_is_none() -> None:
    steps = (Step("model", "thought", output="hm"), Step("retrieval", "search", documents=(Document("t"),)))
    measured = compare(["search"], steps)
    assert measured.details == {"calls": [{"name": "search", "arguments": None, "step": 2, "state": "matched"}]}


def test_a_tool_that_is_only_named_is_a_call() -> None:
    steps = read_steps(
        [{"name": "WebSearch", "input_parameters": {"q": "x"}}, {"name": "ToolQuery", "description": "?"}]
    )
    assert compare(["WebSearch"], steps).reason == "1 of 1 expected call made; extra: ToolQuery"


def test_the_reason_names_what_is_missing_extra_and_different() -> None:
    measured = compare(["a", {"name": "b", "args": {"x": 1}}], calls(("b", {"x": 2}), "c"))
    assert (
        measured.reason == "0 of 2 expected calls made; missing: a; extra: c; with other arguments or out of order: b"
    )


def test_from_files_to_values(tmp_path: Path) -> None:
    questions = [{"query_id": one, "question": f"{one}?", "expected_tools": ["search"]} for one in ("q1", "q2", "q3")]
    steps = {"q1": [{"name": "search", "input": "x"}], "q2": [], "q3": None}
    answers = [{"query_id": one, "answer": "yes", "steps": of} for one, of in steps.items()]
    for name, rows in (("questions", questions), ("answers", answers)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "spec.yaml").write_text(
        "version: 1\nname: tools\ndatasets: {d: {use: golden, path: questions.jsonl}}\n"
        "systems: {s: {use: file, path: answers.jsonl}}\nmetrics: [tool_correctness]\n"
    )
    table = run(tmp_path / "spec.yaml", store=tmp_path / "store").values.sort("query_id")
    assert table.select("value", "status", "reason").rows() == [
        (1.0, "scored", None),
        (0.0, "scored", "0 of 1 expected call made; missing: search"),
        (None, "unscorable", "the query has no recorded steps"),
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"name": "a", "argument": {"x": 1}}, "the unknown key 'argument'; write 'arguments' if it has them"),
        ({"name": "a", "arguments": {"x": 1}, "args": {"x": 2}}, "both 'arguments' and 'args'; keep one"),
    ],
)
def test_arguments_that_could_be_missed_are_an_error(call: dict[str, Any], message: str) -> None:
    measured = compare(["b", call], calls("a", "b"))
    assert measured.status == "error"
    assert measured.reason == f"the column 'expected_tools' holds a call with {message}"


def test_notes_beside_arguments_and_other_tools_keys_are_left_alone() -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "a", "arguments": '{"x": 1}'},
        "why": "the user said so",
    }
    assert compare([call], calls(("a", {"x": 1}))).value == 1.0
    assert compare([{"name": "a", "description": "finds", "note": None}], calls("a")).value == 1.0


@pytest.mark.parametrize(
    "step", [{"type": "tool", "output": "done"}, {"nam": "a", "input": {"x": 1}}, {"name": 3, "args": {}}]
)
def test_a_call_without_a_name_gives_no_value(step: dict[str, Any]) -> None:
    measured = compare(["a"], read_steps([{"thought": "hm"}, step]))
    assert (measured.status, measured.reason) == ("unscorable", "step 2 is a call without a name")
