""""""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec import registry
from rageval_spec.commands.benchmark.system_arguments import (
    BenchmarkRequest,
    ModelBlocks,
    RefusedError,
    build_tree,
    describe_model,
    load_spec,
    name_after,
    read_pieces,
    refuse,
    shape_of,
    write_spec,
    write_text,
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
    data: dict[str, Any] = to_data(build_tree(BenchmarkRequest(datasets, systems, **more)))
    return data


def systems_of(*systems: str) -> dict[str, Any]:
    found: dict[str, Any] = expand(*systems)["systems"]
    return found


def complaints(*systems: str, **more: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_spec(BenchmarkRequest(more.pop("datasets", ("data",)), systems, **more))
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
            "hybrid-bm25+dense-minilm": {"use": "hybrid", "systems": ["bm25", "dense-minilm"]},
        },
        "metrics": ["ndcg@10"],
        "reports": ["terminal"],
    }


@pytest.mark.usefixtures("fruit")
@pytest.mark.parametrize(
    ("argument", "name", "block"),
    [
        ("bm25", "bm25", {"use": "bm25"}),
        (
            "bm25,k1=0.9,stemmer=english",
            "bm25,k1=0.9,stemmer=english",
            {"use": "bm25", "k1": 0.9, "stemmer": "english"},
        ),
        ("lex=bm25,b=0", "lex", {"use": "bm25", "b": 0}),
        ("dense", "dense-minilm", {"use": "dense", "model": "minilm"}),
        ("dense:minilm,depth=5", "dense-minilm,depth=5", {"use": "dense", "model": "minilm", "depth": 5}),
        ("file,path=runs/a,b.txt", "file,path=runs-a,b.txt", {"use": "file", "path": "runs/a,b.txt"}),
        ("my file=file,path=x=y", "my file", {"use": "file", "path": "x=y"}),
        ("dense,model=other", "dense,model=other", {"use": "dense", "model": "other"}),
    ],
)
def test_one_system(argument: str, name: str, block: dict[str, Any]) -> None:
    assert systems_of(argument) == {name: block}


@pytest.mark.usefixtures("fruit")
def test_systems_that_a_hybrid_reads_are_added_unless_they_are_listed() -> None:
    found = systems_of("hybrid:bm25+dense:minilm,weights={bm25: 2, dense-minilm: 1}", "bm25")
    assert found == {
        "hybrid-bm25+dense-minilm,weights={bm25- 2, dense-minilm- 1}": {
            "use": "hybrid",
            "systems": ["bm25", "dense-minilm"],
            "weights": {"bm25": 2, "dense-minilm": 1},
        },
        "bm25": {"use": "bm25"},
        "dense-minilm": {"use": "dense", "model": "minilm"},
    }
    assert list(found)[1:] == ["bm25", "dense-minilm"]


@pytest.mark.usefixtures("fruit")
def test_a_name_can_be_used_before_the_system_that_it_names() -> None:
    found = systems_of("hybrid:lex+dense", "lex=bm25,k1=0.9")
    assert found["hybrid-lex+dense-minilm"]["systems"] == ["lex", "dense-minilm"]
    assert list(found) == ["hybrid-lex+dense-minilm", "lex", "dense-minilm"]


@pytest.mark.usefixtures("fruit")
def test_a_reranker_reads_a_hybrid() -> None:
    data = expand("rerank:cross-encoder/ms-marco-MiniLM-L6-v2@hybrid:bm25+dense,top=50")
    assert data["models"] == {"ms-marco-MiniLM-L6-v2": {"use": "onnx", "model": "cross-encoder/ms-marco-MiniLM-L6-v2"}}
    name, *below = data["systems"]
    assert name == "rerank-ms-marco-MiniLM-L6-v2@hybrid-bm25+dense-minilm,top=50"
    assert below == ["hybrid-bm25+dense-minilm", "bm25", "dense-minilm"]
    reranker = data["systems"][name]
    assert reranker["model"] == "ms-marco-MiniLM-L6-v2"
    assert "hybrid-bm25+dense-minilm" in reranker.values()


def test_each_model_is_declared_once_under_a_readable_name(fruit: Path) -> None:
    for folder in ("e5/onnx", "e5/snapshots/" + "0" * 40, "models/e5"):
        (fruit / folder).mkdir(parents=True)
        (fruit / folder / "model_quantized.onnx").touch()
    absolute = str(fruit / "models" / "e5")
    paths = ["e5/onnx/model_quantized.onnx", f"e5/snapshots/{'0' * 40}", "models/e5", "intfloat/e5", absolute]
    data = expand(*(f"m{number}=dense:{path}" for number, path in enumerate(paths)), "again=dense:intfloat/e5,depth=9")
    assert {name: block["model"] for name, block in data["models"].items()} == {
        "e5": paths[0], "e5-2": paths[1], "e5-3": paths[2], "e5-4": paths[3], "e5-5": paths[4],
    }  # fmt: skip
    assert data["systems"]["again"]["model"] == "e5-4"


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
    request = BenchmarkRequest(("fruit=${HOME}",), ("bm25",))
    spec = load_spec(request)
    assert spec.datasets["fruit"].model_dump()["path"] == "${HOME}"
    assert loads(write_spec(request)).digest == spec.digest


# The spec


@pytest.mark.parametrize(
    "request_",
    [
        BenchmarkRequest(("data",)),
        BenchmarkRequest(
            ("data", "no=data", "1e3=data"), ("bm25,k1=0.9", "yes=bm25", "hybrid:yes+dense"), ("rr", "ndcg(gain=exp)@5")
        ),
        BenchmarkRequest(("data",), ("bm25",), overrides=("systems.bm25.k1=0.7", "statistics.seed=7", "name=mine")),
        BenchmarkRequest(("data",), ("file,path=data/good.run",), split="test", reports=("terminal", "csv")),
        BenchmarkRequest(("data",), ("rerank:a/b@bm25", "dense:c/d")),
    ],
)
@pytest.mark.usefixtures("fruit")
def test_the_printed_spec_equals_the_one_that_runs(request_: BenchmarkRequest) -> None:
    text = write_spec(request_)
    spec = loads(text)
    assert spec.digest == load_spec(request_).digest
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
def test_a_message_points_into_the_argument() -> None:
    assert complaints("bm25", "lex=bm25,k1=0.9,bb=3") == [
        "--system:2:17: unknown key 'bb'; did you mean 'b'?\n  lex=bm25,k1=0.9,bb=3\n                  ^^"
    ]


@pytest.mark.usefixtures("fruit")
@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("bm26", "1: unknown system 'bm26'; did you mean 'bm25'?"),
        ("", "1: the name of a system is missing; the systems are bm25, "),
        ("x=", "3: the name of a system is missing; the systems are bm25, "),
        ("bm25:minilm", "6: bm25 takes no model; write its keys after commas: bm25,KEY=VALUE"),
        ("bm25,k1=x", "9: expected a number, found the text 'x'"),
        ("bm25,k1=1,k1=2", "11: the key 'k1' is given twice"),
        ("bm25,use=file", "6: the key 'use' is given twice"),
        ("bm25,k1=[1", "9: this '[' is not closed; add ']'"),
        ("hybrid", "1: hybrid cannot be used without a target; write hybrid:SYSTEM+SYSTEM"),
        ("hybrid:bm25", "8: 'systems' must have at least 2 entries, but has 1"),
        ("hybrid:bm25+", "13: the name of a system is missing; the systems are "),
        ("hybrid:bm25+dens", "13: unknown system 'dens'; did you mean 'dense'?"),
        ("rerank", "1: rerank cannot be used without a target; write rerank:MODEL@SYSTEM"),
        ("rerank:a/b", "8: rerank needs a system whose results it reads; write rerank:MODEL@SYSTEM"),
        ("rerank:@bm25", "8: the name of a model is missing; a model is minilm, a hub id such as "),
        ("dense:", "7: the name of a model is missing; a model is minilm, a hub id such as "),
        ("dense:miniml", "7: there is no model 'miniml'; did you mean 'minilm'?"),
        ("dense:gte", "7: there is no model 'gte'; a model is minilm, a hub id such as "),
        ("dense:x/e5.onnx", "7: there is no file 'x/e5.onnx'"),
    ],
)
def test_wrong_systems_are_explained(argument: str, message: str) -> None:
    (line,) = first_lines(argument)
    assert line.startswith(f"--system:1:{message}")


@pytest.mark.usefixtures("fruit")
def test_a_misspelled_system_name_gets_a_suggestion() -> None:
    assert first_lines("lexical=bm25,k1=0.9", "hybrid:lexica+dense") == [
        "--system:2:8: unknown system 'lexica'; did you mean 'lexical'?"
    ]


@pytest.mark.usefixtures("fruit")
def test_two_systems_cannot_share_a_name() -> None:
    assert first_lines("bm25", "bm25") == ["--system:2:1: the system 'bm25' is listed twice; remove one of them"]
    assert first_lines("a=bm25", "a=bm25,b=0.1") == [
        "--system:2:1: another system is already named 'a'; give this one another name: NAME=SYSTEM"
    ]
    assert first_lines("dense-minilm=bm25", "rerank:a/b@dense") == [
        "--system:2:12: another system with different settings is already named 'dense-minilm'; "
        "give that system another name"
    ]


@pytest.mark.usefixtures("fruit")
def test_wrong_metrics_are_explained() -> None:
    assert first_lines("bm25", metrics=("rr", "ncdg@10")) == [
        "--metric:2:1: unknown measure 'ncdg@10'; did you mean 'ndcg@10'?"
    ]


@pytest.mark.usefixtures("fruit")
def test_wrong_overrides_are_explained() -> None:
    assert first_lines("bm25", overrides=("systems.bm52.k1=1",)) == [
        "--set:1:9: there is no 'bm52' under systems; did you mean 'bm25'?"
    ]


@pytest.mark.usefixtures("fruit")
def test_a_wrong_split_is_explained() -> None:
    assert first_lines("bm25", split="dev") == [
        "--split:1:1: there is no file 'data/qrels/dev.tsv'; the splits there are: test"
    ]


def test_wrong_folders_are_explained(fruit: Path) -> None:
    (fruit / "docs").mkdir()
    write_collection(fruit / "deep")
    assert complaints("bm25", datasets=("data", "dta")) == [
        "DATASET:2:1: there is no folder 'dta'; did you mean 'data'?\n  dta\n  ^^^"
    ]
    assert first_lines("bm25", datasets=("x=docs", "deep", "data", "deep/data", "/", "")) == [
        "DATASET:1:3: 'docs' is not a BEIR folder: it has no folder 'qrels'; "
        "a BEIR folder has corpus.jsonl, queries.jsonl and qrels/test.tsv",
        "DATASET:2:1: 'deep' is not a BEIR folder; name the BEIR folders in it: data",
        "DATASET:4:1: another dataset is already named 'data'; give this one another name: NAME=deep/data",
        "DATASET:5:1: the folder has no name; give the dataset a name: NAME=/",
        "DATASET:6:1: the folder has no name; give the dataset a name: NAME=",
    ]
    (fruit / "data").rename(fruit / "what?")
    assert first_lines("bm25", datasets=("what?",)) == [
        "DATASET:1:1: 'what?' is not a valid name for a dataset; give the dataset a name: NAME=what?"
    ]


def name(models: ModelBlocks, text: str) -> str:
    (piece,) = read_pieces("--system", [text])
    return models.name(piece)


def test_each_model_is_declared_once_and_minilm_needs_no_declaration() -> None:
    models = ModelBlocks()
    assert [name(models, text) for text in ("minilm", "a/e5", "a/e5", "b/e5")] == ["minilm", "e5", "e5", "e5-2"]
    blocks = {key: to_data(entry.value) for key, entry in models.blocks.items()}
    assert blocks == {"e5": {"use": "onnx", "model": "a/e5"}, "e5-2": {"use": "onnx", "model": "b/e5"}}
    assert all(isinstance(entry.value, YamlMapping) for entry in models.blocks.values())


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "the name of a model is missing"), ("gone.onnx", "there is no file"), ("minilmm", "did you mean 'minilm'")],
)
def test_text_that_is_not_a_model_is_refused(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError) as refused:
        name(ModelBlocks(), text)
    assert told in str(refused.value.diagnostics[0])


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


def test_a_piece_knows_its_place_in_the_argument() -> None:
    first, second = read_pieces("--system", ["bm25", "hybrid:bm25+dense"])
    word, rest = second.partition(":")
    assert rest is not None
    parts = rest.split("+")
    assert (first.text, word.text, [part.text for part in parts]) == ("bm25", "hybrid", ["bm25", "dense"])
    with pytest.raises(RefusedError) as refused:
        refuse(parts[1], "unknown", "write another")
    assert str(refused.value.diagnostics[0]).startswith("--system:2:13: unknown; write another")


def test_without_a_separator_there_is_one_piece() -> None:
    (piece,) = read_pieces("--system", ["bm25"])
    assert piece.partition(":") == (piece, None)
    assert piece.split("+") == [piece]


@pytest.mark.parametrize(
    ("text", "name"),
    [("a/b:c", "a-b-c"), ("..hidden..", "hidden"), ("x" * 300, "x" * 100), ("", ""), ('"quoted"', "quoted")],
)
def test_names_contain_only_characters_that_file_names_can_contain(text: str, name: str) -> None:
    assert name_after(text) == name


def test_a_written_text_is_literal() -> None:
    (piece,) = read_pieces("DATASET", ["${HOME}"])
    assert write_text(piece.place, piece.text).value == "$${HOME}"


@pytest.mark.parametrize(
    ("word", "model", "systems", "advice"),
    [
        ("bm25", None, None, "write bm25:"),
        ("dense", "model", None, "write dense:MODEL"),
        ("hybrid", None, "systems", "write hybrid:SYSTEM+SYSTEM"),
        ("rerank", "model", "system", "write rerank:MODEL@SYSTEM"),
    ],
)
def test_a_systems_keys_determine_what_it_takes_after_the_colon(
    word: str, model: str | None, systems: str | None, advice: str
) -> None:
    shape = shape_of(registry.load("systems", word).node_type)
    assert (shape.model and shape.model.key, shape.systems and shape.systems.key) == (model, systems)
    assert shape.describe(word) == advice
