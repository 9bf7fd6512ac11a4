""""""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_from_checkpoints.model_graph import build_graph
from rageval_spec.commands.models.bench import (
    Bench,
    FormResult,
    _list_forms,
    choose_texts,
    make_job,
    measure_forms,
    pair_texts,
    write_texts,
)
from rageval_spec.commands.models.listing import find_model
from rageval_spec.drawing.view import write_text
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.plugin import Embeddings, PairScores, TokenTags
from tests.commands.models.fetched import invoke, write_fetched
from tests.onnx_from_checkpoints.folders import (
    BERT,
    CROSS_ENCODER,
    bert_weights,
    write_cross_encoder,
    write_detector,
    write_encoder,
)
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
    from rageval_spec.inference.model_files import locate

    embedded = locate(minilm, Path()).folder
    assert embedded is not None
    snapshot = write_fetched("owner/damaged", "model.safetensors", folder=caches)
    (snapshot / "tokenizer.json").write_bytes((embedded / "tokenizer.json").read_bytes())
    with pytest.raises(DataError, match=r"model\.safetensors"):
        measure_forms("owner/damaged", count=2, rounds=1)


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
        measure_forms(minilm, texts=caches / name)


def test_a_missing_file_is_explained(minilm: str) -> None:
    with pytest.raises(RagevalError, match=r"nothing\.txt: no such file"):
        measure_forms(minilm, texts=Path("nothing.txt"))


def test_a_folder_that_is_not_a_beir_folder_is_explained(caches: Path, minilm: str) -> None:
    (caches / "folder").mkdir()
    with pytest.raises(DataError, match=r"qrels/test\.tsv: no such file"):
        measure_forms(minilm, texts=caches / "folder")


def test_each_task_has_its_unit() -> None:
    assert [make_job(task, ["One.", "Two."]).unit for task in (None, "embedding")] == ["text", "text"]
    assert make_job("classification", ["One.", "Two."]).content == [("One.", "One."), ("Two.", "One.")]
    assert make_job("token_classification", ["One.", "Two."]).start(1).content == [("One.", "One.")]


def test_agreement_of_vectors_is_their_cosine() -> None:
    first, second = (
        Embeddings(np.array(one, np.float32), np.zeros(2, bool)) for one in ([[1, 0], [2, 0]], [[3, 0], [0, 1]])
    )
    assert make_job("embedding", ["a"]).compare(first, second) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("logits", "reference", "mean", "largest"),
    [([[0.0], [0.0]], [[0.0], [50.0]], 0.25, 0.5), ([[0.0, 0.0]], [[0.0, 50.0]], 0.5, 0.5)],
)
def test_agreement_of_classifiers_is_in_probabilities(
    logits: list[list[float]], reference: list[list[float]], mean: float, largest: float
) -> None:
    first, second = (PairScores(np.array(one, np.float32), np.zeros(len(one), bool)) for one in (logits, reference))
    assert make_job("classification", ["One."]).compare(first, second) == pytest.approx((mean, largest))


def test_agreement_of_token_classifiers_is_over_all_tokens() -> None:
    def tag(*logits: list[list[float]]) -> TokenTags:
        arrays = [np.array(one, np.float32) for one in logits]
        return TokenTags([np.zeros((len(one), 2), np.int64) for one in arrays], arrays, np.zeros(len(arrays), bool))

    job = make_job("token_classification", ["One."])
    compared = job.compare(tag([[0, 0]], [[0, 0], [50, 0]]), tag([[0, 0]], [[0, 50], [50, 0]]))
    assert compared == pytest.approx((1 / 6, 0.5))


def test_texts_of_json_lines_include_their_titles(caches: Path) -> None:
    path = caches / "corpus.jsonl"
    path.write_text('{"_id": "1", "title": "Cats", "text": "purr"}\n{"_id": "2", "text": "bark"}\n')
    assert choose_texts(path, 500, None) == ["Cats purr", "bark"]


def test_built_in_texts_are_distinct_and_always_the_same() -> None:
    texts = list(write_texts(600))
    assert texts == list(write_texts(600))
    assert len(set(texts)) == 600
    lengths = sorted(len(text.split()) for text in texts)
    assert lengths[0] < 25
    assert lengths[-1] > 150


def test_pairs_have_claims_that_are_and_are_not_in_the_document() -> None:
    texts = ["One cat. Two cats.", "Three dogs. Four dogs.", "Five owls."]
    pairs = pair_texts(texts)
    assert [document for document, _ in pairs] == texts
    assert [claim in document for document, claim in pairs] == [True, False, True]
    assert pair_texts(texts) == pairs
    assert pair_texts(["One."]) == [("One.", "One.")]


def test_the_table() -> None:
    measured = (
        FormResult("fp32", (4.0, 9.0, 5.0), 450_000_000, 40_000_000),
        FormResult("int8", (2.0, 2.5, 3.0), 230_000_000, 0, (0.9971, 0.9812)),
    )
    quality = {"fp32": 0.6451, "int8": 0.6438}
    bench = Bench("minilm", 500, 40_000, 3, 2, 3, measured, "scifact", quality, ("torch was not measured: absent",))
    lines = write_text(bench.draw(), 120).decode().splitlines()
    assert lines[:2] == [
        "minilm: 500 texts (3 of them truncated), 40,000 tokens, 2 threads, the median of 3 interleaved rounds",
        "form  texts/s  tokens/s  speed  memory       cosine with fp32  ndcg@10 on scifact",
    ]
    assert lines[3:5] == [
        "fp32    100.0     8,000  1.00x  410 MB                                     0.6451",
        "int8    200.0    16,000  2.00x  230 MB  0.9971, lowest 0.9812    0.6438 (-0.0013)",
    ]
    assert lines[6].startswith("memory: the peak of the process")
    assert lines[-1] == "! torch was not measured: absent"


def test_the_table_of_a_classifier() -> None:
    measured = (
        FormResult("fp32", (4.0,), 410_000_000),
        FormResult("int8", (2.0,), 230_000_000, compared=(0.0021, 0.0153)),
    )
    bench = Bench("owner/nli", 100, 40_000, 0, 2, 1, measured, unit="pair")
    lines = write_text(bench.draw(), 120).decode().splitlines()
    assert lines[:2] == [
        "owner/nli: 100 pairs, 40,000 tokens, 2 threads, one round",
        "form  pairs/s  tokens/s  speed  memory  probabilities off fp32",
    ]
    assert lines[4] == "int8     50.0    20,000  2.00x  230 MB  0.0021, at most 0.0153"
    forms = json.loads(bench.to_json())["forms"]
    assert [form["pairs_per_second"] for form in forms] == [25, 50]
    assert [form["probability_difference_from_fp32"] for form in forms] == [None, {"mean": 0.0021, "largest": 0.0153}]
    assert "cosine_with_fp32" not in forms[0]


def test_the_graph_of_the_repository_can_be_measured(caches: Path) -> None:
    folder = write_encoder(caches / "both")
    (folder / "onnx").mkdir()
    onnx.save_model(build_graph(BERT, bert_weights(seed=1)), folder / "onnx" / "model.onnx")
    for graph in ("own", "repository"):
        named = find_model(str(folder), graph=graph)
        assert named.source.graph == graph
        keys = {"model": str(folder), "revision": None, "graph": graph}
        nodes = [one.node for one in _list_forms(named, make_job("embedding", ["a"]), keys, None)]
        assert {node["graph"] for node in nodes if node["use"] == "onnx"} == {graph}
