from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.spec.overriding import override
from rageval_spec.spec.places import Source
from rageval_spec.spec.reading import YamlMapping, read_yaml, to_data

TEXT = """\
version: 1
systems: {a.b: {use: bm25, k1: 1.2}, empty: null}
gates: [{metric: rr, min: 0.5}, {metric: map, min: 0.1}]
metrics: [rr]
"""


def change(*overrides: str, text: str = TEXT) -> tuple[Any, list[str]]:
    root, _ = read_yaml(Source("spec.yaml", text))
    assert isinstance(root, YamlMapping)
    before = to_data(root)
    tree, diagnostics = override(root, overrides)
    assert to_data(root) == before  # the original tree is unchanged
    return to_data(tree), [f"{d.path}:{d.position.line}: {d.message}; {d.hint}" for d in diagnostics]


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("gates.0.min=0.9", ("gates", 0, "min"), 0.9),
        ("gates.1.on=lower", ("gates", 1, "on"), "lower"),
        ("gates.0={metric: map, max: 1}", ("gates", 0), {"metric": "map", "max": 1}),
        ("systems.a.b.k1=0.4", ("systems", "a.b", "k1"), 0.4),
        ("systems.empty.use=file", ("systems", "empty", "use"), "file"),
        ("metrics=[map, rr]", ("metrics",), ["map", "rr"]),
        ("limits.threads=2", ("limits", "threads"), 2),
        ("name=", ("name",), None),
        (" gates . 0 . min =1", ("gates", 0, "min"), 1),
    ],
)
def test_a_path_sets_one_value(text: str, path: tuple[str | int, ...], expected: object) -> None:
    data, faults = change(text)
    assert faults == []
    for step in path:
        data = data[step]
    assert data == expected


def test_the_last_override_wins() -> None:
    assert change("gates.0.min=0.1", "gates.0.min=0.2")[0]["gates"][0] == {"metric": "rr", "min": 0.2}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("gates.2.min=1", "the list has no entry 2; its entries are 0 to 1"),
        ("gates.rr.min=1", "'rr' is not an index of a list; its entries are 0 to 1"),
        ("gates[0].min=1", "'gates[0]' is not a key; write gates.0"),
        ("metrics.0.cutoff=1", "'metrics.0' is 'rr', which has no keys; replace the whole value: metrics.0=..."),
        ("gates.0.min", "an override must have the form PATH=VALUE; for example, gates.0.min=0.5"),
        ("gates..min=1", "a key is missing in the path; separate keys and indexes with single dots"),
        ("reports.0.path=x", "the spec has no 'reports', so it has no entry 0; add 'reports:' to the spec, or set all"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_to_write(text: str, fault: str) -> None:
    data, (found,) = change("version=1", text)
    assert found.startswith(f"--set:2: {fault}")
    assert data["gates"][0]["min"] == 0.5


def test_the_bound_of_a_missing_gate_cannot_be_set() -> None:
    _, (fault,) = change("gates.0.min=0.5", text="version: 1\n")
    assert fault == (
        "--set:1: the spec has no 'gates', so it has no entry 0; "
        "add 'gates:' to the spec, or set all of it: gates=[{metric: ndcg@10, min: 0.5}]"
    )


def read_tree(text: str) -> YamlMapping:
    root, _ = read_yaml(Source("spec.yaml", text))
    assert isinstance(root, YamlMapping)
    return root


def test_overrides_can_be_a_dict() -> None:
    root = read_tree("systems: {bm25: {k1: 1}}\ngates: [{min: 0}]\n")
    tree, found = override(root, {"systems.bm25.k1": 0.9, "gates.0.min": None})
    assert found == []
    assert to_data(tree) == {"systems": {"bm25": {"k1": 0.9}}, "gates": [{"min": None}]}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gates.7.min", "overrides.gates.7.min: the list has no entry 7; its only entry is 0"),
        ("gates[0]", "overrides.gates[0]: 'gates[0]' is not a key; write gates.0"),
        ("a=b", "overrides.a=b: a path must not contain '='; write the value behind the colon: {path: value}"),
        ("a..b", "overrides.a..b: a key is missing in the path; separate keys and indexes with single dots"),
    ],
)
def test_a_fault_in_a_dict_of_overrides_names_its_path(path: str, expected: str) -> None:
    tree = read_tree("gates: [{min: 0}]\n")
    unchanged, found = override(tree, {path: 1})
    assert [str(one) for one in found] == [expected]
    assert to_data(unchanged) == to_data(tree)


def test_one_override_can_be_one_text() -> None:
    tree, found = override(read_tree("name: a\n"), "name=b")
    assert (to_data(tree), found) == ({"name": "b"}, [])
