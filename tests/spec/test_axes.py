"""Axes of a spec: their values, what the command line adds and removes, and diagnostics that point to the axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.spec.spec_file import load, loads

TEXT = """\
version: 1
datasets: {fruit: {use: beir, path: data}}
systems: {bm25: {use: bm25}}
metrics: [rr]
axes:
"""
K1 = "  systems.bm25.k1: [0.9, 1.5]\n"


def read(axes: str = K1, **more: object) -> Spec:
    return loads(TEXT + axes, check_files=False, **more)  # type: ignore[arg-type]


def find_faults(axes: str, sweep: Sequence[str] = ()) -> list[tuple[str, int, str, str]]:
    with pytest.raises(SpecError) as raised:
        read(axes, sweep=sweep)
    return [(one.path, one.position.line, one.message, one.code) for one in raised.value.diagnostics]


def test_a_spec_has_the_first_values_and_each_combination_its_own() -> None:
    axes = K1 + "  datasets.fruit.path: [data, other]\n"
    assert (read(axes).systems["bm25"].k1, read(axes).datasets["fruit"].path) == (0.9, "data")  # type: ignore[attr-defined]
    chosen = read(axes, combination={"systems.bm25.k1": 1, "datasets.fruit.path": 1})
    assert (chosen.systems["bm25"].k1, chosen.datasets["fruit"].path) == (1.5, "other")  # type: ignore[attr-defined]
    assert read(axes).axes == {"systems.bm25.k1": (0.9, 1.5), "datasets.fruit.path": ("data", "other")}


def test_a_key_that_the_block_lacks_and_a_whole_list_can_be_values() -> None:
    text = TEXT.replace("}}\nmetrics", "}, h: {use: hybrid, systems: [bm25, bm25]}}\nmetrics")
    text = text.replace("{use: bm25}", "{use: bm25}, b: {use: bm25}") + "  systems.h.systems: [[bm25, b], [b, bm25]]\n"
    spec = loads(text.replace("systems: [bm25, bm25]", "weights: null"), check_files=False)
    assert spec.systems["h"].systems == ("bm25", "b")  # type: ignore[attr-defined]


def test_the_command_line_adds_replaces_and_fixes_axes() -> None:
    assert read(sweep=["systems.bm25.b=0.4,0.8"]).axes == {"systems.bm25.k1": (0.9, 1.5), "systems.bm25.b": (0.4, 0.8)}
    assert read(sweep=["systems.bm25.k1=1,2,3"]).axes == {"systems.bm25.k1": (1, 2, 3)}
    fixed = read(overrides=["systems.bm25.k1=7"])
    assert fixed.axes == {} and fixed.systems["bm25"].k1 == 7  # type: ignore[attr-defined]
    assert read(overrides={"systems.bm25.k1": 7}).axes == {}


@pytest.mark.parametrize(
    ("axis", "message", "code"),
    [
        ("systems.bm25.dept: [10, 20]", "unknown key 'dept'", "unknown-key"),
        ("systems.bm25.b: [0.4, high]", "expected a number, found the text 'high'", "wrong-type"),
        ("systems.bm25.b: [0.4, 3]", "'b' must be at most 1, not the number 3", "out-of-bounds"),
        ("systems.bn25.b: [0.4, 0.5]", "there is no 'bn25' under systems", "wrong-axis"),
        ("system.bm25.b: [0.4, 0.5]", "an axis is a key of a block under datasets, systems or models", "wrong-axis"),
        ("systems.bm25: [0.4, 0.5]", "an axis is a key of a block under datasets, systems or models", "wrong-axis"),
        ("judges.strict.model: [a, b]", "an axis is a key of a block under datasets, systems or models", "wrong-axis"),
        ("systems.bm25.b: [0.4]", "'systems.bm25.b' must have at least 2 entries, but has 1", "out-of-bounds"),
        ("systems.bm25.b: []", "'systems.bm25.b' must have at least 2 entries, but has none", "out-of-bounds"),
        ("systems.bm25.b: 0.4", "expected a list, found the number 0.4", "wrong-type"),
        ("systems.bm25.b.x: [1, 2]", "'systems.bm25.b' is '0.4', which has no keys", "wrong-axis"),
        ("systems.bm25.method: ['${secret:HOME}', lucene]", "a secret cannot be used here", "misplaced-secret"),
    ],
)
def test_a_fault_points_to_the_axis(axis: str, message: str, code: str) -> None:
    text = axis if ".b.x" not in axis else f"systems.bm25.b: [0.4, 0.5]\n  {axis}"
    faults = [one for one in find_faults(f"{K1}  {text}\n") if one[2].startswith(message)]
    line = 7 + text.count("\n")
    assert [(path, at, which) for path, at, _, which in faults] == [("<text>", line, code)]


def test_all_faults_are_told_at_once() -> None:
    faults = find_faults("  systems.bm25.b: [0.4, high]\n  systems.bm25.k1: [low, 2]\n  systems.bm25.dept: [1, 2]\n")
    assert [line for _, line, _, _ in faults] == [6, 7, 8]


def test_faults_of_the_command_line_point_into_it() -> None:
    assert find_faults(K1, ["systems.bm25.depth=5,x"])[0][:3] == (
        "--sweep", 1, "expected a whole number, found the text 'x'"
    )  # fmt: skip
    assert find_faults(K1, ["systems.bm25.depth"])[0][3] == "invalid-argument"


def test_too_many_combinations_are_refused() -> None:
    values = ", ".join(f"{1 + at / 100}" for at in range(20))
    (fault,) = find_faults(f"  systems.bm25.k1: [{values}]\n  systems.bm25.delta: [{values}]\n")
    assert fault[1:] == (5, "the axes have 400 combinations; a sweep has at most 256", "wrong-axis")


def test_variables_are_filled_in_for_each_combination() -> None:
    axes = "  datasets.fruit.path: ['${A}/x', '$${A}']\n"
    found = [read(axes, environment={"A": "a"}, combination={"datasets.fruit.path": at}) for at in (0, 1)]
    assert [one.datasets["fruit"].path for one in found] == ["a/x", "${A}"]  # type: ignore[attr-defined]


def test_an_evaluation_of_one_spec_refuses_axes(tmp_path: Path) -> None:
    from rageval_spec.errors import UsageError
    from rageval_spec.runner import run
    from tests.tiny import write_spec

    path = write_spec(tmp_path, systems={"bm25": {"use": "bm25"}}, axes={"systems.bm25.k1": [1, 2]})
    with pytest.raises(UsageError, match=r"add --set systems\.bm25\.k1=VALUE"):
        run(load(path))
