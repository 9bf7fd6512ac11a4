""""""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.commands.benchmark.system_arguments import (
    build_tree,
    describe_model,
    load_spec,
    write_spec,
    write_yaml,
)
from rageval_spec.diagnostics import SpecError
from rageval_spec.plugin import Model, ModelNode
from rageval_spec.spec import loads
from rageval_spec.spec.text.places import SourceText
from rageval_spec.spec.text.yaml_tree import YamlEntry, YamlMapping, YamlScalar, read_yaml, to_data
from tests.tiny import Install, install, write_collection

__all__ = ["install"]


class SomeModelNode(ModelNode):
    """A model; only its name matters here."""

    model: str


class SomeModel(Model[SomeModelNode]):
    """Computes nothing."""

    node_type = SomeModelNode


@pytest.fixture
def fruit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: Install) -> Path:
    """The current folder, which contains the BEIR folder `data`."""
    install("models", "onnx", SomeModel)
    write_collection(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expand(*systems: str, datasets: Sequence[str] = ("data",), **more: Any) -> dict[str, Any]:
    data: dict[str, Any] = to_data(build_tree(datasets, systems, **more))
    return data


def complaints(*systems: str, **more: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        overrides = more.pop("overrides", ())
        load_spec(build_tree(more.pop("datasets", ("data",)), systems, **more), overrides)
    return [str(diagnostic) for diagnostic in caught.value.diagnostics]


def first_lines(*systems: str, **more: Any) -> list[str]:
    return [complaint.splitlines()[0] for complaint in complaints(*systems, **more)]


# Systems


@pytest.mark.usefixtures("fruit")
def test_systems_and_metrics_have_defaults() -> None:
    assert expand() == {
        "version": 1,
        "name": "benchmark",
        "datasets": {"data": {"use": "beir", "path": "data"}},
        "systems": {
            "bm25": {"use": "bm25"},
            "dense-minilm": {"use": "dense", "model": "minilm"},
            "hybrid": {"use": "hybrid", "systems": ["bm25", "dense-minilm"]},
        },
        "metrics": ["ndcg@10"],
        "reports": ["terminal"],
    }


@pytest.mark.usefixtures("fruit")
def test_a_hybrid_reads_all_systems_before_it_and_a_reranker_the_last() -> None:
    data = expand("bm25", "dense", "hybrid", "rerank:cross-encoder/ms-marco-MiniLM-L6-v2", "dense:intfloat/e5")
    assert data["systems"] == {
        "bm25": {"use": "bm25"},
        "dense-minilm": {"use": "dense", "model": "minilm"},
        "hybrid": {"use": "hybrid", "systems": ["bm25", "dense-minilm"]},
        "rerank-ms-marco-MiniLM-L6-v2": {"use": "rerank", "model": "ms-marco-MiniLM-L6-v2", "system": "hybrid"},
        "dense-e5": {"use": "dense", "model": "e5"},
    }
    assert data["models"] == {
        "ms-marco-MiniLM-L6-v2": {"use": "onnx", "model": "cross-encoder/ms-marco-MiniLM-L6-v2"},
        "e5": {"use": "onnx", "model": "intfloat/e5"},
    }


def test_each_model_is_declared_once_under_a_readable_name(fruit: Path) -> None:
    (fruit / "models" / "e5").mkdir(parents=True)
    data = expand("dense:intfloat/e5", "bm25", "rerank:models/e5", "rerank:a/minilm")
    assert {name: block["model"] for name, block in data["models"].items()} == {
        "e5": "intfloat/e5", "e5-2": "models/e5", "minilm-2": "a/minilm",
    }  # fmt: skip
    assert data["systems"]["rerank-e5"]["model"] == "e5-2"


# Datasets


def test_datasets_are_named_after_their_folders(fruit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_collection(fruit / "deep")
    assert expand(datasets=("./data/", "other=deep/data"), split="test")["datasets"] == {
        "data": {"use": "beir", "path": "./data/", "split": "test"},
        "other": {"use": "beir", "path": "deep/data", "split": "test"},
    }
    monkeypatch.chdir(fruit / "data")
    assert expand(datasets=(".",))["datasets"] == {"data": {"use": "beir", "path": "."}}


def test_a_folder_name_can_contain_an_equals_sign(fruit: Path) -> None:
    write_collection(fruit / "deep").rename(fruit / "a=b")
    assert expand(datasets=("a=b",))["datasets"] == {"a=b": {"use": "beir", "path": "a=b"}}


def test_variables_in_arguments_stay_literal(fruit: Path) -> None:
    (fruit / "data").rename(fruit / "${HOME}")
    spec = load_spec(build_tree(("fruit=${HOME}",), ("bm25",)))
    assert spec.datasets["fruit"].model_dump()["path"] == "${HOME}"
    assert loads(write_spec(build_tree(("fruit=${HOME}",), ("bm25",)))).digest == spec.digest


# The spec


@pytest.mark.parametrize(
    ("arguments", "overrides"),
    [
        ({}, ()),
        (
            {
                "datasets": ("data", "no=data", "1e3=data"),
                "systems": ("bm25", "dense", "hybrid"),
                "metrics": ("rr", "ndcg(gain=exp)@5"),
            },
            (),
        ),
        ({"systems": ("bm25",)}, ("systems.bm25.k1=0.7", "statistics.seed=7", "name=mine")),
        (
            {"systems": ("file",), "split": "test", "reports": ("terminal", "csv")},
            ("systems.file.path=data/good.run",),
        ),
        ({"systems": ("bm25", "rerank:a/b", "dense:c/d")}, ()),
    ],
)
@pytest.mark.usefixtures("fruit")
def test_the_printed_spec_equals_the_one_that_runs(arguments: dict[str, Any], overrides: Sequence[str]) -> None:
    tree = build_tree(**{"datasets": ("data",), **arguments})
    spec = loads(write_spec(tree, overrides))
    assert spec.digest == load_spec(tree, overrides).digest
    assert spec.warnings == ()


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(), st.lists, max_leaves=5))
def test_every_value_survives_a_round_trip_through_yaml(value: Any) -> None:
    text = yaml.safe_dump({"value": value})
    tree, faults = read_yaml(SourceText("", text))
    if faults or tree is None:
        return
    top = SourceText("", "").place(0)
    assert isinstance(tree, YamlMapping)
    again, faults = read_yaml(SourceText("", write_yaml(YamlMapping(top, tree.entries))))
    assert (again and to_data(again), faults) == ({"value": value}, [])


@given(st.text(min_size=1))
def test_every_text_survives_a_round_trip_through_yaml(text: str) -> None:
    top = SourceText("", "").place(0)
    tree = YamlMapping(top, {"key": YamlEntry(top, YamlScalar(top, text, text))})
    again, faults = read_yaml(SourceText("", write_yaml(tree)))
    if any("cannot be part of a" in fault.message for fault in faults):
        return
    assert (again and to_data(again), faults) == ({"key": text}, [])


# What is wrong


@pytest.mark.usefixtures("fruit")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bm26"], "1:1: unknown system 'bm26'; did you mean 'bm25'?"),
        ([""], "1:1: the name of a system is missing; the systems are bm25, "),
        (["bm25", "bm25,k1=0.9"], "2:1: unknown system 'bm25,k1=0.9'; "),
        (["bm25:minilm"], "1:6: bm25 takes no model; for other settings, write --set systems.bm25.KEY=VALUE"),
        (["hybrid"], "1:1: hybrid needs at least two systems that it reads; write at least two systems before it: "),
        (["bm25", "hybrid"], "2:1: hybrid needs at least two systems"),
        (["rerank:a/b"], "1:1: rerank needs a system that it reads; write a system before it: --system bm25 "),
        (
            ["bm25", "rerank"],
            "2:1: the name of a model is missing; a model is minilm or multilingual, a hub id such as ",
        ),
        (["dense:"], "1:7: the name of a model is missing; a model is minilm or multilingual, a hub id such as "),
        (["dense:miniml"], "1:7: there is no model 'miniml'; did you mean 'minilm'?"),
        (["dense:gte"], "1:7: there is no model 'gte'; a model is minilm or multilingual, a hub id such as "),
        (["dense:x/e5.onnx"], "1:7: there is no file 'x/e5.onnx'"),
        (["bm25", "bm25"], "2:1: the system 'bm25' is listed twice; remove one of them, or write a spec"),
    ],
)
def test_wrong_systems_are_explained(arguments: list[str], message: str) -> None:
    (line,) = first_lines(*arguments)
    assert line.startswith(f"--system:{message}")


@pytest.mark.usefixtures("fruit")
def test_a_message_points_into_the_argument() -> None:
    assert complaints("bm25", "dense:miniml") == [
        "--system:2:7: there is no model 'miniml'; did you mean 'minilm'?"
        " [invalid-argument]\n  dense:miniml\n        ^^^^^^"
    ]


@pytest.mark.usefixtures("fruit")
def test_wrong_metrics_are_explained() -> None:
    assert first_lines("bm25", metrics=("rr", "ncdg@10")) == [
        "--metric:2:1: unknown measure 'ncdg@10'; did you mean 'ndcg@10'? [unknown-metric]"
    ]


@pytest.mark.usefixtures("fruit")
def test_wrong_overrides_are_explained() -> None:
    assert first_lines("bm25", overrides=("systems.bm52.k1=1",)) == [
        "--set:1:9: there is no 'bm52' under systems; did you mean 'bm25'? [invalid-argument]"
    ]


@pytest.mark.usefixtures("fruit")
def test_a_wrong_split_is_explained() -> None:
    assert first_lines("bm25", split="dev") == [
        "--split:1:1: there is no file 'data/qrels/dev.tsv'; the splits there are: test [missing-file]"
    ]


def test_wrong_folders_are_explained(fruit: Path) -> None:
    (fruit / "docs").mkdir()
    write_collection(fruit / "deep")
    assert complaints("bm25", datasets=("data", "dta")) == [
        "DATASET:2:1: there is no folder 'dta'; did you mean 'data'? [missing-file]\n  dta\n  ^^^"
    ]
    assert first_lines("bm25", datasets=("x=docs", "deep", "data", "deep/data", "/", "")) == [
        "DATASET:1:3: 'docs' is not a BEIR folder: it has no folder 'qrels'; "
        "a BEIR folder has corpus.jsonl, queries.jsonl and qrels/test.tsv [invalid-argument]",
        "DATASET:2:1: 'deep' is not a BEIR folder; name the BEIR folders in it: data [invalid-argument]",
        "DATASET:4:1: another dataset is already named 'data'; give this one another name: NAME=deep/data"
        " [invalid-argument]",
        "DATASET:5:1: the folder has no name; give the dataset a name: NAME=/ [invalid-argument]",
        "DATASET:6:1: the folder has no name; give the dataset a name: NAME= [invalid-argument]",
    ]
    (fruit / "data").rename(fruit / "what?")
    assert first_lines("bm25", datasets=("what?",)) == [
        "DATASET:1:1: 'what?' is not a valid name for a dataset; give the dataset a name: NAME=what? [invalid-argument]"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("intfloat/e5-small-v2", "e5-small-v2"),
        ("models/ours/onnx/model.onnx", "ours"),
        ("models/model.onnx", "model"),
        ("cache/ours/snapshots/" + "0a" * 20, "ours"),
    ],
)
def test_a_model_is_named_after_the_distinctive_part_of_its_path(text: str, expected: str) -> None:
    assert describe_model(text) == expected
