from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.models.bench import Request, measure_forms
from rageval_spec.errors import DataError, RagevalError
from tests.commands.models.fetched import invoke, write_fetched
from tests.inference.folders import CROSS_ENCODER, write_cross_encoder, write_detector
from tests.tiny import write_collection

LONG = {**CROSS_ENCODER, "max_position_embeddings": 64}


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


@pytest.mark.parametrize("labels", [1, 3])
def test_classifiers_read_pairs(caches: Path, labels: int) -> None:
    config = {**CROSS_ENCODER, "id2label": {str(number): f"LABEL_{number}" for number in range(labels)}}
    folder = write_cross_encoder(caches / "classifier", config=config)
    found = run_bench(folder, "--count", "20", "--rounds", "1", "--threads", "1")
    assert (found["unit"], found["texts"], found["truncated"]) == ("pair", 20, 20)
    assert found["tokens"] == 20 * 24
    whole, small = found["forms"]
    assert whole["probability_difference_from_fp32"] is None
    apart = small["probability_difference_from_fp32"]
    assert 0 < apart["mean"] <= apart["largest"] < 0.2
    for form in (whole, small):
        assert form["pairs_per_second"] == pytest.approx(20 / form["seconds"][0])
        assert 1_000_000 < form["peak_memory_bytes"] - form["start_memory_bytes"] < 500_000_000


def test_token_classifiers_read_pairs(caches: Path) -> None:
    found = run_bench(write_detector(caches / "detector"), "--count", "20", "--rounds", "1", "--threads", "1")
    [whole] = found["forms"]
    assert (found["unit"], whole["name"], found["truncated"]) == ("pair", "fp32", 18)
    assert whole["pairs_per_second"] > 0
    # The graph has no weights, so that there is nothing to quantise.
    assert [remark.partition(":")[0] for remark in found["remarks"]] == ["int8 was not measured"]


def test_a_known_verifiers_template_is_counted(caches: Path) -> None:
    plain = write_cross_encoder(caches / "owner" / "classifier")
    known = write_cross_encoder(caches / "lytang" / "MiniCheck-RoBERTa-Large", config=LONG)
    counts = [run_bench(folder, "--count", "2", "--rounds", "1")["tokens"] for folder in (plain, known)]
    assert counts[0] == 2 * 24
    assert counts[1] > counts[0]


def test_a_folder_of_documents_is_not_searched_with_a_classifier(caches: Path) -> None:
    write_collection(caches)
    folder = write_cross_encoder(caches / "classifier")
    found = run_bench(folder, "--texts", caches / "data", "--rounds", "1")
    assert found["dataset"] is None
    assert "ndcg@10" not in found["forms"][0]


def test_damaged_weights_are_a_data_error(caches: Path, minilm: str) -> None:
    from rageval_spec.inference.sources import locate

    embedded = locate(minilm, Path()).folder
    assert embedded is not None
    snapshot = write_fetched("owner/damaged", "model.safetensors", folder=caches)
    (snapshot / "tokenizer.json").write_bytes((embedded / "tokenizer.json").read_bytes())
    with pytest.raises(DataError, match=r"model\.safetensors"):
        measure_forms(Request("owner/damaged", count=2, rounds=1))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("texts.txt", "\n  \n", "the file contains no text"),
        ("texts.txt", "", "the file is empty"),
        ("texts.jsonl", '{"text": "a"}\n{"txt": "b"}\n', "texts.jsonl:2: expected an object such as"),
        ("texts.jsonl", "a\n", "texts.jsonl:1: expected an object such as"),
        ("texts.jsonl", "[1]\n", "texts.jsonl:1: expected an object such as"),
    ],
)
def test_unusable_texts_are_explained(caches: Path, minilm: str, name: str, content: str, message: str) -> None:
    (caches / name).write_text(content)
    with pytest.raises(DataError, match=re.escape(message)):
        measure_forms(Request(minilm, texts=caches / name))


def test_a_missing_file_is_explained(minilm: str) -> None:
    with pytest.raises(RagevalError, match=r"nothing\.txt: no such file"):
        measure_forms(Request(minilm, texts=Path("nothing.txt")))


def test_a_folder_that_is_not_a_beir_folder_is_explained(caches: Path, minilm: str) -> None:
    (caches / "folder").mkdir()
    with pytest.raises(DataError, match=r"qrels/test\.tsv: no such file"):
        measure_forms(Request(minilm, texts=caches / "folder"))
