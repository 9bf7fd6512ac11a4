"""What an earlier version read or wrote, this one reads: docs/policy.md promises it.

`releases/VERSION/` has specs, the keys of the published schemas (`spec_keys.json`, `results_keys.json`), and a results
folder, as that version had them. A new release adds a folder; those of the past are never changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rageval_spec
from rageval_spec import registry
from rageval_spec.data.results import build_schema
from rageval_spec.history.results_manifest import check_manifest
from rageval_spec.spec import json_schema, load
from rageval_spec.spec.blocks.spec_node import SpecNode

RELEASES = sorted(path for path in (Path(__file__).parent / "releases").iterdir() if path.is_dir())
ROOT = Path(__file__).parents[2]
each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_this_version_has_its_samples() -> None:
    minor = rageval_spec.__version__.rpartition(".")[0]
    assert RELEASES[-1].name == minor, f"copy what {minor} reads and writes to releases/{minor}"


@pytest.mark.parametrize(
    "path", [path for release in RELEASES for path in sorted((release / "specs").iterdir())], ids=lambda path: path.stem
)
def test_its_specs_are_read(path: Path) -> None:
    spec = load(path, check_files=False, environment={"JUDGE_URL": "http://localhost", "JUDGE_KEY": "x"})
    former = path.stem == "former_keys"
    assert {warning.code for warning in spec.warnings} <= ({"former-key"} if former else set())


def find_node(definition: str) -> Any:
    section, _, word = definition.partition(".")
    return registry.load(section, word).node_type if word else SpecNode


@each_release
def test_no_key_of_a_spec_is_gone_without_a_new_name(release: Path) -> None:
    schema = json_schema.build_schema()
    blocks = {"": schema, **schema["definitions"]}
    gone = {}
    for name, keys in read(release / "spec_keys.json").items():
        lacking = {*keys} - {*blocks.get(name, {}).get("properties", {})}
        if lacking and ("." in name or not name):
            lacking -= {*getattr(find_node(name), "former_keys", {})}
        if lacking:
            gone[name] = sorted(lacking)
    assert gone == {}


@each_release
def test_results_keep_their_keys_and_need_no_new_one(release: Path) -> None:
    schema = build_schema()
    blocks = {"": schema, **schema["$defs"]}
    for name, known in read(release / "results_keys.json").items():
        assert {*known["keys"]} <= {*blocks[name]["properties"]}, name
        assert {*blocks[name]["required"]} <= {*known["required"]}, f"{name}: give a new key a default"


@each_release
def test_its_results_are_read(release: Path) -> None:
    loaded = rageval_spec.load_results(release / "results")
    evaluation = loaded.data
    assert [gate.outcome for gate in evaluation.gates] == ["pass", "pass", "pass", "pass", "fail"]
    assert evaluation.verdict == "fail"
    means = {(one.system, one.metric): one.mean for one in evaluation.aggregates}
    written = read(release / "results" / "results.json")["aggregates"]
    assert means == {(one["system"], one["metric"]): one["mean"] for one in written}
    assert evaluation.values.height == sum(one["total"] for one in written)
    assert evaluation.samples.height > 0


@each_release
def test_its_manifest_is_read(release: Path) -> None:
    count, others = check_manifest(release / "results")
    assert (count, others) == (len(list((release / "results").iterdir())) - 2, [])


def test_the_policy_lists_all_former_keys() -> None:
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    table = [
        line.split("|") for line in page.partition("| word | was | is |")[2].splitlines() if line.startswith("| `")
    ]
    listed = {(word.strip(" `"), was.strip(" `")) for _, words, was, *_ in table for word in words.split(",")}
    known: set[tuple[str, str]] = set()
    for section in registry.SECTIONS:
        for word in registry.builtin_words(section):
            node = registry.load(section, word).node_type
            keys = {**getattr(node, "former_keys", {}), **getattr(node, "former_columns", {})}
            known |= {(word, key) for key in keys}
    assert listed == known
