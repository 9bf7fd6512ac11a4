""""""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rageval_spec.diagnostics import NOWHERE, SpecError
from rageval_spec.spec import Spec, load, load_dict
from rageval_spec.spec.overrides import override, read_value
from rageval_spec.spec.text.places import SourceText
from rageval_spec.spec.text.yaml_tree import YamlMapping, read_yaml, to_data
from tests.tiny import write_collection, write_spec

TEXT = """\
version: 1
systems: {a.b: {use: bm25, k1: 1.2}, empty: null}
gates: [{metric: rr, min: 0.5}, {metric: map, min: 0.1}]
metrics: [rr]
"""


def change(*overrides: str, text: str = TEXT) -> tuple[Any, list[str]]:
    root, _ = read_yaml(SourceText("spec.yaml", text))
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
    root, _ = read_yaml(SourceText("spec.yaml", text))
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
        ("gates.7.min", "overrides.gates.7.min: the list has no entry 7; its only entry is 0 [invalid-argument]"),
        ("gates[0]", "overrides.gates[0]: 'gates[0]' is not a key; write gates.0 [invalid-argument]"),
        (
            "a=b",
            "overrides.a=b: a path must not contain '='; write the value behind the colon: {path: value}"
            " [invalid-argument]",
        ),
        (
            "a..b",
            "overrides.a..b: a key is missing in the path; separate keys and indexes with single dots"
            " [invalid-argument]",
        ),
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


CONTENT: dict[str, Any] = {
    "version": 1,
    "name": "tiny",
    "datasets": {"fruit": {"use": "beir", "path": "data"}},
    "systems": {"bm25": {"use": "bm25", "k1": 1.2}},
    "metrics": ["rr", {"use": "ndcg", "cutoff": 10}],
    "gates": [{"metric": "rr", "min": 0.5}],
}


def read(folder: Path, content: Any = None, **more: Any) -> Spec:
    if not (folder / "data").exists():
        write_collection(folder)
    return load_dict(CONTENT if content is None else content, folder=folder, **more)


def faults(folder: Path, content: Any, **more: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read(folder, content, **more)
    assert str(caught.value).splitlines() == [str(one) for one in caught.value.diagnostics]
    return [str(one) for one in caught.value.diagnostics]


def test_a_dict_is_the_spec_that_its_yaml_would_be(tmp_path: Path) -> None:
    sections = {key: value for key, value in CONTENT.items() if key not in ("version", "name", "datasets")}
    written = load(write_spec(tmp_path, **sections, statistics={}))
    spec = read(tmp_path)
    assert spec.digest == written.digest
    assert (spec.systems, spec.gates, spec.folder) == (written.systems, written.gates, tmp_path)


def test_it_can_hold_what_programs_hold(tmp_path: Path) -> None:
    content = {
        **CONTENT,
        "datasets": {"fruit": {"use": "beir", "path": tmp_path / "data"}},
        "systems": {"bm25": {"use": "bm25", "k1": np.float32(0.5), "depth": np.int64(7)}},
        "metrics": ("rr",),
    }
    node = read(tmp_path, content).systems["bm25"]
    assert (node.k1, node.depth) == (0.5, 7)  # type: ignore[attr-defined]


def test_variables_are_filled_in(tmp_path: Path) -> None:
    content = {**CONTENT, "name": "${NAME}"}
    assert read(tmp_path, content, environment={"NAME": "filled"}).name == "filled"
    (fault,) = faults(tmp_path, content, environment={})
    assert fault == "name: the environment variable NAME is not set; set it: export NAME=... [environment-variable]"


def test_every_fault_names_its_key_path_at_once(tmp_path: Path) -> None:
    content = {
        **CONTENT,
        "systems": {"bm25": {"use": "bm25", "k1": -1, "dept": 3}, "x": {"use": "bm52"}},
        "metrics": ["rr", "rr"],
        "gates": [{"metric": "rr", "min": math.nan}],
        "reports": ["json", {"use": "json"}, {"use": "csv", "path": object()}],
    }
    assert faults(tmp_path, content) == [
        "gates.0.min: nan is not a number that a spec can use [wrong-value]",
        "metrics.1: the metric 'rr' is listed twice, first at metrics.0; remove one, or name one of them with 'as:'"
        " [duplicate-metric]",
        "reports.1: this report and the one at reports.0 both write 'results.json'; "
        "give this one another 'path:', or remove it [duplicate-path]",
        "reports.2.path: 'object' is not a type that a spec can contain; "
        "write text, a number, True, False, None, a list or a dict [wrong-type]",
        "systems.bm25.dept: unknown key 'dept'; did you mean 'depth'? [unknown-key]",
        "systems.bm25.k1: 'k1' must be above 0, not the number -1 [out-of-bounds]",
        "systems.x.use: unknown system 'bm52'; did you mean 'bm25'? [unknown-word]",
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([], "spec: a spec is a dict with the keys version, datasets, systems, metrics; found list"),
        ({3: 4}, "spec: a key must be text, not 3; write it in quotes"),
        ({**CONTENT, "name": "a\0b"}, "name: the character U+0000 cannot be part of a value"),
        ({**CONTENT, "a\0b": 1}, "spec: the character U+0000 cannot be part of a key"),
        ({**CONTENT, "limits": {"threads": 10**30}}, "limits.threads: this number is too large"),
        ({**CONTENT, "datasets": {"fruit": {"use": "beir", "path": "nix"}}}, "datasets.fruit.path: there is no folder"),
    ],
)
def test_what_no_spec_can_hold(tmp_path: Path, content: Any, expected: str) -> None:
    assert faults(tmp_path, content)[0].startswith(expected)


def test_a_dict_inside_itself_ends(tmp_path: Path) -> None:
    content: dict[str, Any] = {**CONTENT}
    content["ranking"] = content
    assert any("nested more than 50 levels deep" in fault for fault in faults(tmp_path, content))
    wide: list[Any] = [0] * 300
    for _ in range(4):
        wide = [wide] * 300
    assert any("more than 100,000 values" in str(one) for one in read_value(wide[:1], (), "spec")[1])


def test_places_are_key_paths() -> None:
    root, found = read_value({"a": [1, {"b": None}], "c": True}, (), "spec")
    assert found == []
    assert to_data(root) == {"a": [1, {"b": None}], "c": True}
    assert (root.place.path, root.place.position, root.place.where) == ("spec", NOWHERE, "at spec")
    assert root.entries["a"].value.items[1].entries["b"].value.place.path == "a.1.b"  # type: ignore[union-attr]
